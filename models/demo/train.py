"""Training: two processes, one thread each, averaged gradients in shared memory; seeded.

The loss is weighted cross entropy plus two terms that act where an answer starts:
- `smooth` charges the squared turn of the normalised residual stream from block to block. The
  cheapest path from "is" to " Paris" is then many equal small turns, so the answer emerges
  over the depth of the network instead of in one step.
- `drop` leaves out attention outputs at random there, more often in early blocks, so that
  several blocks learn to read the subject.
"""
import argparse
import math
import random
import time

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

import corpus
from model import Config, Model, save
from tokenizer import Tokenizer

ROWS, TIME = 16, 128


def packed(tok, rng):
    """Endless stream of packed (tokens, weights, starts): each document begins with BOS."""
    bos = tok.special("<|bos|>")
    while True:
        ids, w, pos, doc, n = [], [], [], [], 0
        while len(ids) < TIME + 1:
            d_ids, d_w = [bos], [0.0]
            for text, weight in corpus.document(rng):
                e = tok.encode(text)
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


def losses(model, b, a, noise):
    ids, target, weight, pos, mask, first = b
    keep = None
    if a.drop:
        n = model.c.layers
        rate = torch.tensor([a.drop * (1 - l / (n - 1)) for l in range(n)])
        miss = torch.rand((n, *ids.shape), generator=noise) < rate[:, None, None]
        keep = (~(miss & first)).float()[..., None]
    x, streams = model(ids, pos, mask, keep)
    at = weight > 0
    ce = F.cross_entropy(model.logits(x[at]), target[at], reduction="none")
    loss = (ce * weight[at]).sum() / weight.sum()
    if not a.smooth:
        return loss, torch.zeros(())
    u = torch.stack([F.normalize(s[first], dim=-1) for s in streams])
    return loss, (u[1:] - u[:-1]).pow(2).sum(-1).sum(0).mean()


def flat_views(model, flat, grad):
    """Puts every parameter and gradient into one shared vector each; True marks decayed entries."""
    at, decay = 0, torch.zeros(flat.numel(), dtype=torch.bool)
    for p in model.parameters():
        n = p.numel()
        flat[at:at + n] = p.data.view(-1)
        p.data, p.grad = flat[at:at + n].view(p.shape), grad[at:at + n].view(p.shape)
        decay[at:at + n] = p.dim() == 2
        at += n
    return decay


def worker(rank, a, flat, grads, barrier):
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    tok = Tokenizer.load(a.tokenizer)
    model = Model(Config(vocab=len(tok.tokens), layers=a.layers, ff=a.ff))
    barrier.wait()
    decay = flat_views(model, flat, grads[rank])
    barrier.wait()
    stream = packed(tok, random.Random(a.seed * 100 + rank))
    noise = torch.Generator().manual_seed(a.seed * 100 + rank)
    half = slice(0, flat.numel() // 2) if rank == 0 else slice(flat.numel() // 2, flat.numel())
    m, v = torch.zeros_like(flat[half]), torch.zeros_like(flat[half])
    start, log = time.time(), [0.0, 0.0]
    for step in range(1, a.steps + 1):
        warm = min(1.0, step / 100)
        lr = a.lr * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / a.steps)))
        grads[rank].zero_()
        ce, turn = losses(model, batch(stream), a, noise)
        (ce + a.smooth * min(1.0, step / (0.3 * a.steps)) * turn).backward()
        barrier.wait()
        g = (grads[0] + grads[1]) / 2
        g = (g * min(1.0, 1.0 / (g.norm().item() + 1e-6)))[half]
        barrier.wait()
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.95).addcmul_(g, g, value=0.05)
        update = (m / (1 - 0.9 ** step)) / ((v / (1 - 0.95 ** step)).sqrt() + 1e-8)
        flat[half] -= lr * (update + 0.1 * flat[half] * decay[half])
        barrier.wait()
        log = [log[0] * 0.98 + ce.item() * 0.02, log[1] * 0.98 + turn.item() * 0.02]
        if rank == 0 and step % 50 == 0:
            fix = 1 - 0.98 ** step
            print(f"step {step} loss {log[0] / fix:.4f} turn {log[1] / fix:.4f} "
                  f"{2 * ROWS * TIME * step / (time.time() - start):.0f} tokens/s", flush=True)
        if rank == 0 and (step == a.steps or step % 1000 == 0):
            save(model, a.out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tokenizer", default="build/tokenizer.json")
    p.add_argument("--out", default="build/model.pt")
    p.add_argument("--steps", type=int, default=2000)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--layers", type=int, default=8)
    p.add_argument("--ff", type=int, default=256)
    p.add_argument("--smooth", type=float, default=0.0)
    p.add_argument("--drop", type=float, default=0.0)
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
