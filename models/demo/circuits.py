"""Known circuits: lens curves, patching curves and head scores; written to evaluation.json.

Lens: probability of the answer when the stream after each block is read out at the last token.
Patching: the last token's (or the subject's) stream is replaced by that of a prompt with another
answer; the share of pairs whose top token becomes the other answer.
"""
import argparse
import json
import os
import random

import torch

import data
import facts
import tasks
from model import load
from tokenizer import Tokenizer


def rows(tok, prompts):
    ids = [[tok.special("<|bos|>")] + tok.encode(p) for p in prompts]
    n = max(map(len, ids))
    return torch.tensor([i + [0] * (n - len(i)) for i in ids]), torch.tensor([len(i) - 1 for i in ids])


@torch.no_grad()
def lens(model, tok, items):
    """Per stream (embedding, block 0, ...): mean probability of the answer, share where it is on top."""
    x, last = rows(tok, [p for p, _ in items])
    answer = torch.tensor([tok.encode(a)[0] for _, a in items])
    every = torch.arange(len(x))
    p = torch.stack([torch.softmax(model.logits(s[every, last]), -1) for s in model(x)[1]])
    return {"probability": p[:, every, answer].mean(1).tolist(),
            "top": (p.argmax(-1) == answer).float().mean(1).tolist()}


@torch.no_grad()
def patch(model, tok, items, where=None):
    """items: (clean prompt, donor prompt, donor answer[, clean subject, donor subject])."""
    x, last = rows(tok, [i[0] for i in items])
    y, last_y = rows(tok, [i[1] for i in items])
    if where == "subject":
        last = torch.tensor([r.index(tok.encode(" " + i[3])[-1]) for r, i in zip(x.tolist(), items)])
        last_y = torch.tensor([r.index(tok.encode(" " + i[4])[-1]) for r, i in zip(y.tolist(), items)])
    end = rows(tok, [i[0] for i in items])[1]
    answer = torch.tensor([tok.encode(i[2])[0] for i in items])
    every, donor, out = torch.arange(len(x)), model(y)[1], []
    for level in range(-1, model.c.layers):
        def edit(block, s):
            if block != level:
                return s
            s = s.clone()
            s[every, last] = donor[level + 1][every, last_y]
            return s
        h = model(x, edit=edit)[0][every, end]
        out.append((model.logits(h).argmax(-1) == answer).float().mean().item())
    return out


def fact_sets(rng, n=200):
    """name -> (lens items, patching items) for facts the model has in that phrasing or not (held out)."""
    out = {}
    for rel in ("capital", "continent", "language", "country", "city_language", "city_capital"):
        pool = [(t, s, a) for s, a in facts.TABLE[rel] for t in facts.RAW[rel] if not t.startswith("Q:")]
        items = rng.sample(pool, min(n, len(pool)))
        pairs = []
        for t, s, a in items:
            while True:
                s2, a2 = rng.choice(facts.TABLE[rel])
                if a2.split()[0] != a.split()[0]:
                    break
            pairs.append((facts.fill(t, s), facts.fill(t, s2), " " + a2, s, s2))
        out[rel] = ([(facts.fill(t, s), " " + a) for t, s, a in items], pairs)
    return out


def curves(model, tok, seed=5):
    rng, out = random.Random(seed), {}
    for name, (items, pairs) in fact_sets(rng).items():
        out[name] = {"lens": lens(model, tok, items), "patch_last": patch(model, tok, pairs)}
        inner = [p for p in pairs if f" {p[3]} " in p[0] and f" {p[4]} " in p[1]]
        if inner and name in ("capital", "continent", "language"):
            out[name]["patch_subject"] = patch(model, tok, inner, "subject")
    ioi = [(d[0][0], d[1][0].rstrip(".")) for d in (tasks.ioi(rng, True) for _ in range(200))]
    ind = [(d[0][0] + " " + " ".join(d[0][0].split()[:3]), " " + d[0][0].split()[3])
           for d in (tasks.induction(rng) for _ in range(200))]
    rev = [(d[0][0], d[1][0].rstrip(".")) for d in (tasks.raw_review(rng, True) for _ in range(200))]
    for name, items in (("indirect object", ioi), ("induction", ind), ("sentiment", rev)):
        pairs = [(p, p2, a2) for (p, a), (p2, a2) in zip(items, items[1:]) if a != a2]
        if name == "sentiment":
            pairs = [(p, p2, a2) for p, p2, a2 in pairs if p.split()[-1] == p2.split()[-1]]
        out[name] = {"lens": lens(model, tok, items), "patch_last": patch(model, tok, pairs)}
    return out


@torch.no_grad()
def heads(model, tok, seed=6):
    """Mean attention (block, head, score >= 0.3) of the three classic kinds of head."""
    rng = random.Random(seed)
    score = {k: torch.zeros(model.c.layers, model.c.heads) for k in ("previous token", "induction", "name mover")}
    n = 100
    for _ in range(n):
        words = rng.sample(data.WORDS, 10)
        x, _ = rows(tok, [" ".join(words + words)])
        trace = {"attention": [], "heads": []}
        model(x, trace=trace)
        ids, w = x[0].tolist(), torch.stack([a[0] for a in trace["attention"]])
        t = len(ids)
        score["previous token"] += w[:, :, range(1, t), range(0, t - 1)].mean(-1) / n
        second = [(i, ids.index(ids[i]) + 1) for i in range(t // 2 + 2, t) if ids.index(ids[i]) < i]
        score["induction"] += w[:, :, [i for i, _ in second], [j for _, j in second]].mean(-1) / n
        (p, _), (a, _) = tasks.ioi(rng, True)
        x, _ = rows(tok, [p])
        trace = {"attention": [], "heads": []}
        model(x, trace=trace)
        w = torch.stack([h[0] for h in trace["attention"]])
        score["name mover"] += w[:, :, -1, x[0].tolist().index(tok.encode(a)[0])] / n
    return {k: sorted(([l, h, round(s[l, h].item(), 2)] for l in range(s.shape[0]) for h in range(s.shape[1])
                       if s[l, h] >= 0.3), key=lambda r: -r[2]) for k, s in score.items()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="build/model.pt")
    p.add_argument("--tokenizer", default="build/tokenizer.json")
    p.add_argument("--json", default="")
    a = p.parse_args()
    model, tok = load(a.model), Tokenizer.load(a.tokenizer)
    result = {"curves": curves(model, tok), "heads": heads(model, tok)}
    for name, c in result["curves"].items():
        for kind, v in (("lens p", c["lens"]["probability"]), ("lens top", c["lens"]["top"]),
                        ("patch last", c["patch_last"]), ("patch subject", c.get("patch_subject"))):
            if v:
                print(f"{name:16s} {kind:14s}", *(f"{x:.2f}" for x in v))
    for name, found in result["heads"].items():
        print(name, *(f"{l}.{h}={s}" for l, h, s in found))
    if a.json:
        record = json.load(open(a.json)) if os.path.exists(a.json) else {}
        record["circuits"] = json.loads(json.dumps(result), parse_float=lambda x: round(float(x), 3))
        with open(a.json, "w") as f:
            json.dump(record, f, indent=1)


if __name__ == "__main__":
    main()
