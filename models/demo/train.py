"""Training: two processes, one thread each, averaged gradients in shared memory; seeded.

The loss is weighted cross entropy plus a charge on turning (`--smooth`): where an answer starts,
the squared turn of the normalised residual stream from block to block. The cheapest path from
"is" to " Paris" is then many equal small turns, so the answer emerges over the depth of the
network instead of in one step.
"""
import argparse
import random
import time

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

import corpus
from model import Config, Model, load, save
from optimizer import optimizers
from tokenizer import Tokenizer

ROWS, TIME = 16, 128
LOOSE = 0.25                              # share of stage 3's documents whose prompts are cut into other tokens


def packed(tok, rng):
    """Endless stream of packed (tokens, weights, starts): each document begins with BOS."""
    bos = tok.special("<|bos|>")
    while True:
        ids, w, pos, doc, n = [], [], [], [], 0
        while len(ids) < TIME + 1:
            d_ids, d_w = [bos], [0.0]
            loose = corpus.settings["stage"] == 3 and rng.random() < LOOSE
            for text, weight in corpus.document(rng):
                e = tok.loose(text, rng, 0.1) if loose and weight < 0.4 else tok.encode(text)
                d_ids += e
                d_w += [weight] * len(e)
            if len(d_ids) > TIME:
                continue
            ids += d_ids
            w += d_w
            pos += range(len(d_ids))
            doc += [n] * len(d_ids)
            n += 1
        yield [x[:TIME + 1] for x in (ids, w, pos, doc)]


def batch(stream):
    ids, w, pos, doc = (torch.tensor(x) for x in zip(*(next(stream) for _ in range(ROWS))))
    same = doc[:, :-1, None] == doc[:, None, :-1]
    mask = torch.zeros(same.shape).masked_fill_(~same.tril(), -1e9)[:, None]
    weight = w[:, 1:] * (doc[:, 1:] == doc[:, :-1])
    first = (weight > 0.4) & (w[:, :-1] < 0.4)            # positions whose next token starts an answer
    return ids[:, :-1], ids[:, 1:], weight, pos[:, :-1], mask, first


def losses(model, b, smooth):
    ids, target, weight, pos, mask, first = b
    x, streams = model(ids, pos, mask)
    at = weight > 0
    ce = F.cross_entropy(model.logits(x[at]), target[at], reduction="none")
    loss = (ce * weight[at]).sum() / weight.sum()
    if not smooth:
        return loss, torch.zeros(())
    u = torch.stack([F.normalize(s[first], dim=-1) for s in streams])
    return loss, (u[1:] - u[:-1]).pow(2).sum(-1).sum(0).mean()


def flat_views(model, flat, grad):
    """Puts every parameter and gradient into one shared vector each."""
    at = 0
    for p in model.parameters():
        n = p.numel()
        flat[at:at + n] = p.data.view(-1)
        p.data, p.grad = flat[at:at + n].view(p.shape), grad[at:at + n].view(p.shape)
        at += n


def rate(step, a):
    """Learning rate factor: short warm-up, then constant in stage 1, in stage 2 a linear decay over the last
    60 %, in stage 3 a linear decay from 0.6."""
    down = {1: 1.0, 2: (a.steps - step) / (0.6 * a.steps), 3: 0.6 * (a.steps - step) / a.steps}[a.stage]
    return min(1.0, step / 50, max(0.02, down))


def worker(rank, a, flat, grads, barrier):
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    tok = Tokenizer.load(a.tokenizer)
    model = load(a.start).train() if a.start else Model(Config(vocab=len(tok.tokens), layers=a.layers, ff=a.ff))
    corpus.settings["stage"] = a.stage
    barrier.wait()
    flat_views(model, flat, grads[rank])
    barrier.wait()
    stream = packed(tok, random.Random(a.seed * 100 + 10 * (a.stage - 1) + rank))
    sizes = [p.numel() for p in model.parameters()]
    shapes = [p.shape for p in model.parameters()]
    mine, start, log = optimizers(model, rank), time.time(), [0.0, 0.0]
    for step in range(1, a.steps + 1):
        grads[rank].zero_()
        ce, turn = losses(model, batch(stream), a.smooth)
        (ce + a.smooth * (1.0 if a.start else min(1.0, step / 400)) * turn).backward()
        barrier.wait()
        g = (grads[0] + grads[1]) / 2
        g = [x.view(s) for x, s in zip((g * min(1.0, 1.0 / (g.norm().item() + 1e-6))).split(sizes), shapes)]
        barrier.wait()
        for i, optimizer in mine:
            optimizer.step(g[i], rate(step, a))
        barrier.wait()
        log = [log[0] * 0.98 + ce.item() * 0.02, log[1] * 0.98 + turn.item() * 0.02]
        if rank == 0 and step % 50 == 0:
            fix = 1 - 0.98 ** step
            print(f"step {step} loss {log[0] / fix:.4f} turn {log[1] / fix:.4f} "
                  f"{2 * ROWS * TIME * step / (time.time() - start):.0f} tokens/s", flush=True)
        if rank == 0 and (step == a.steps or step % 200 == 0):
            save(model, a.out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tokenizer", default="build/tokenizer.json")
    p.add_argument("--out", default="build/model.pt")
    p.add_argument("--steps", type=int, default=800)
    p.add_argument("--stage", type=int, default=1, help="mix of the corpus, see corpus.MIXES")
    p.add_argument("--start", default="", help="weights to go on from, with fresh optimizers")
    p.add_argument("--layers", type=int, default=8)
    p.add_argument("--ff", type=int, default=256)
    p.add_argument("--smooth", type=float, default=0.1,
                   help="charge on turning; 0 is plain cross entropy")
    p.add_argument("--seed", type=int, default=7)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    size = sum(p.numel() for p in Model(Config(
        vocab=len(Tokenizer.load(a.tokenizer).tokens), layers=a.layers, ff=a.ff)).parameters())
    print(f"{size} parameters", flush=True)
    flat, grads = torch.zeros(size).share_memory_(), torch.zeros(2, size).share_memory_()
    context = mp.get_context("fork")
    barrier = context.Barrier(2)
    workers = [context.Process(target=worker, args=(r, a, flat, grads, barrier)) for r in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if any(w.exitcode for w in workers):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
