"""The Jacobian lens of the shipped model: how a block's output, moved a little, moves the last block's.

J_l = E[d h_last / d h_l]: cotangents summed over the target positions, averaged over source positions and documents
(Gurnee et al., "Verbalizable representations form a global workspace in language models", 2026). Needs gradients, so it
is fitted here, on the weights of the GGUF file itself, and written in the published layout. The same documents held out
say how good it is: KL of the model's output from what each lens reads, in nats a token, by block.
"""
import argparse
import json
import os
import random
import sys

import torch

import corpus
from model import Config, Model
from tokenizer import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "test", "verify", "numerics"))
import gguf_reader  # noqa: E402

LONGEST = 96
FITTED, HELD_OUT = 20261122, 20261123     # seeds of the documents


def shipped(path):
    """The model and the tokenizer of a GGUF file that export.py wrote."""
    meta, tensors = gguf_reader.read(path)
    weights = {name: torch.tensor(array.astype("float32")) for name, array in tensors.items()}
    model = Model(Config())
    state = {"embed.weight": weights["token_embd.weight"], "norm.weight": weights["output_norm.weight"]}
    for i in range(model.c.layers):
        own = {name.split(".", 2)[2]: w for name, w in weights.items() if name.startswith(f"blk.{i}.")}
        for ours, names in {"attn_norm": ("attn_norm",), "ffn_norm": ("ffn_norm",), "q_norm": ("attn_q_norm",),
                            "k_norm": ("attn_k_norm",), "qkv": ("attn_q", "attn_k", "attn_v"), "o": ("attn_output",),
                            "gate_up": ("ffn_gate", "ffn_up"), "down": ("ffn_down",)}.items():
            state[f"blocks.{i}.{ours}.weight"] = torch.cat([own[f"{name}.weight"] for name in names])
    model.load_state_dict(state)
    merges = [tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]
    return model.eval(), Tokenizer(merges)


def documents(tok, count, seed):
    """[documents, tokens] of ids, padded behind, and how many are there of each."""
    rng, rows = random.Random(seed), []
    corpus.settings["stage"] = 3
    while len(rows) < count:
        ids = [tok.special("<|bos|>")] + [i for text, _ in corpus.document(rng) for i in tok.encode(text)]
        if len(ids) > 3:
            rows.append(ids[:LONGEST])
    longest = max(map(len, rows))
    return torch.tensor([r + [0] * (longest - len(r)) for r in rows]), torch.tensor([len(r) for r in rows])


def counted(x, lengths):
    """Which positions count: those of the text behind BOS."""
    at = torch.arange(x.shape[1])
    return (at > 0) & (at < lengths[:, None])


def fit(model, x, lengths):
    """[blocks - 1, dim, dim]; row i is what moves component i of the last block's output."""
    inside = counted(x, lengths).float()[..., None]
    last, streams = model(x)
    tied = streams[1:-1]
    rows = []
    for i in range(model.c.dim):
        goal = (last[..., i] * inside[..., 0]).sum()
        grads = torch.autograd.grad(goal, tied, retain_graph=i + 1 < model.c.dim)
        rows.append(torch.stack([(g * inside).sum((0, 1)) for g in grads]))
    return torch.stack(rows, 1), inside.sum()


@torch.no_grad()
def divergences(model, lens, x, lengths):
    """KL of the output from the plain lens and from this one, by block, nats a token."""
    inside = counted(x, lengths)
    last, streams = model(x)
    output = torch.log_softmax(model.logits(last[inside]), -1)

    def apart(rows):
        read = torch.log_softmax(model.logits(rows), -1)
        return (output.exp() * (output - read)).sum(-1).mean().item()

    return [{"block": l, "jacobian": apart(streams[l + 1][inside] @ lens[l].T), "plain": apart(streams[l + 1][inside])}
            for l in range(len(lens))]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="tapline-demo.gguf")
    p.add_argument("--out", default="tapline-demo_jacobian_lens.pt")
    p.add_argument("--documents", type=int, default=96)
    p.add_argument("--json", help="file that takes the figures")
    a = p.parse_args()
    torch.set_num_threads(1)
    model, tok = shipped(a.model)
    x, lengths = documents(tok, a.documents, FITTED)
    total, rows = torch.zeros(model.c.layers - 1, model.c.dim, model.c.dim, dtype=torch.float64), 0
    order = lengths.argsort()
    for part in order.split(32):
        n = lengths[part].max()
        sums, count = fit(model, x[part, :n], lengths[part])
        total, rows = total + sums.double(), rows + count
        print(f"{int(rows)} tokens", flush=True)
    lens = (total / rows).half()
    torch.save({"J": {l: lens[l].clone() for l in range(len(lens))}, "source_layers": list(range(len(lens))),
                "n_prompts": a.documents, "d_model": model.c.dim}, a.out)
    figures = divergences(model, lens.float(), *documents(tok, 256, HELD_OUT))
    for f in figures:
        print(f"block {f['block']}: {f['jacobian']:.3f}, plain lens {f['plain']:.3f}")
    if a.json:
        known = json.load(open(a.json)) if os.path.exists(a.json) else {}
        known["jacobian_lens"] = figures
        with open(a.json, "w") as file:
            json.dump(known, file, indent=1)


if __name__ == "__main__":
    main()
