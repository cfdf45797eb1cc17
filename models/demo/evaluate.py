"""Evaluation on what training held out: prints a table, writes it to evaluation.json."""
import argparse
import json
import math
import os
import random

import torch

import corpus
import facts
import tasks
from model import load
from noise import SLIPS, stranger, typo_in
from tokenizer import Tokenizer

STOP = ("<|endoftext|>", "<|im_end|>")
UNKNOWN = corpus.DONT_KNOW


@torch.no_grad()
def generate(model, tok, prompts, limit=60):
    """Greedy continuations (without the stop token); prompts of one length go together."""
    stop, same, out = {tok.special(s) for s in STOP}, {}, [None] * len(prompts)
    for i, p in enumerate(prompts):
        ids = [tok.special("<|bos|>")] + tok.encode(p)
        same.setdefault(len(ids), []).append((i, ids))
    for rows in same.values():
        caches, new = [{} for _ in model.blocks], torch.tensor([ids for _, ids in rows])
        made = [[] for _ in rows]
        for _ in range(limit):
            new = model.logits(model.step(new, caches)[:, -1]).argmax(-1, keepdim=True)
            for m, t in zip(made, new[:, 0].tolist()):
                if not m or m[-1] not in stop:
                    m.append(t)
            if all(m[-1] in stop for m in made):
                break
        for (i, _), m in zip(rows, made):
            out[i] = tok.decode(m[:-1] if m[-1] in stop else m)
    return out


def pick(rng, items, n):
    items = list(items)
    return items if len(items) <= n else rng.sample(items, n)


def as_pairs(docs):
    """Raw documents as (prompt, expected continuation)."""
    return [(d[0][0], d[1][0]) for d in docs]


def chats(rng, qs, thinking, n):
    return [(corpus.chat_prompt(q, thinking, rng.choice((None, None, corpus.SYSTEMS[0]))), a)
            for q, a in pick(rng, qs, n)]


def next_word(rng):
    """A list that starts again, cut anywhere after its second first word; the rest of it is expected."""
    first, again = (t.split() for t, _ in tasks.induction(rng))
    k = rng.randrange(1, len(first))
    return " ".join(first + again[:k]), " " + " ".join(again[k:])


def groups(seed=11):
    """name -> list of (prompt, expected greedy continuation)."""
    rng, g = random.Random(seed), {}
    for rel in ("capital", "continent", "language", "country", "reverse"):
        g[f"raw {rel}"] = [(p, f" {a}.") for p, a in facts.held_raw(rel)]
    for rel in facts.TWO_HOP:
        g[f"raw two-hop {rel[5:]} (pair never seen)"] = [(p, f" {a}.") for p, a in pick(rng, facts.held_two_hop(rel), 150)]
    g["sentiment"] = as_pairs(tasks.raw_review(rng, True) for _ in range(300))
    g["sentiment, negated"] = as_pairs([d for d in (tasks.raw_review(rng, True) for _ in range(600))
                                        if " not " in d[0][0] or " never " in d[0][0]][:200])
    g["indirect object"] = as_pairs(tasks.ioi(rng, True) for _ in range(300))
    lists = [next_word(rng) for _ in range(200)]
    g["induction, next word"] = [(p, " " + a.split()[0]) for p, a in lists]
    g["induction, whole rest"] = lists
    g["succession"] = [(p, a) for p, a in as_pairs(tasks.succession(rng) for _ in range(100))]
    g["opposites"] = as_pairs(tasks.opposite(rng) for _ in range(60))
    g["raw unknown"] = [(facts.stranger_fact(rng, stranger(rng, True)), " unknown.") for _ in range(200)]
    known = [(q, a) for rel in facts.ASK for q, _, a in facts.held_chat(rel)]
    places = [(facts.fill(t, s), facts.reply(rel, s, x)[1], s) for rel in ("capital", "continent", "language", "country")
              for s, x in facts.TABLE[rel] for t in facts.ASK[rel]]
    raws = [(p, f" {a}.") for rel in ("capital", "continent", "language") for p, a in facts.held_raw(rel)
            if not p.startswith("Q:")]
    g["raw lower case"] = [(p.lower(), a) for p, a in pick(rng, raws, 200)]
    named = [(facts.fill(t, s), f" {a}.", s) for rel in ("capital", "continent", "language")
             for s, a in facts.TABLE[rel] for t in facts.RAW[rel] if not t.startswith("Q:")]
    for word, kinds in (("slip", SLIPS), ("wrong letter", ("replace",))):
        g[f"raw typo: {word}"] = [(typo_in(p, rng, s, True, kinds), a) for p, a, s in pick(rng, named, 300)]
    for on in (False, True):
        w = "thinking" if on else "plain"
        g[f"chat facts, {w}"] = chats(rng, known, on, 300)
        g[f"chat lower case, {w}"] = chats(rng, [(q.lower(), a) for q, a in known], on, 200)
        for word, kinds in (("slip", SLIPS), ("wrong letter", ("replace",))):
            g[f"chat typo: {word}, {w}"] = chats(rng, [(typo_in(q, rng, s, True, kinds), a)
                                                      for q, a, s in pick(rng, places, 200)], on, 200)
        other = [f(rng) for _ in range(40) for f in (tasks.ask_opposite, tasks.ask_after)]
        other += [tasks.ask_review(rng, True) for _ in range(80)]
        g[f"chat other tasks, {w}"] = chats(rng, [(q, a) for q, _, a in other], on, 200)
        g[f"chat unknown, {w}"] = chats(rng, [(corpus.unknown_question(rng, True), UNKNOWN) for _ in range(200)], on, 200)
        g[f"small talk, {w}"] = chats(rng, [(q, a) for qs, _, a in corpus.SMALL_TALK for q in qs], on, 40)
    return g


def right(name, got, want):
    if name.startswith("induction"):
        return (got + " ").startswith(want + " ")
    if name.startswith(("chat", "small")) and "thinking" in name:
        head, _, tail = got.partition("</think>")
        return head.startswith("<think>") and len(head) > 15 and tail.strip() == want
    return got == want


def evaluate(model, tok, wrong=0, only="", share=1.0, seed=11):
    table = {}
    for name, items in groups(seed).items():
        if only not in name:
            continue
        items = items[:math.ceil(share * len(items))]
        got = generate(model, tok, [p for p, _ in items])
        ok = [right(name, o, w) for o, (_, w) in zip(got, items)]
        table[name] = {"accuracy": round(sum(ok) / len(ok), 4), "n": len(ok)}
        print(f"{name:44s} {sum(ok) / len(ok):.3f}  {len(ok)}", flush=True)
        for (p, w), o in [(i, o) for i, o, k in zip(items, got, ok) if not k][:wrong]:
            print(f"    {p!r}\n      got {o!r} want {w!r}")
    return table


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="build/model.pt")
    p.add_argument("--tokenizer", default="build/tokenizer.json")
    p.add_argument("--json", default="")
    p.add_argument("--wrong", type=int, default=0, help="show this many mistakes of each group")
    p.add_argument("--only", default="", help="only groups whose name holds this")
    p.add_argument("--share", type=float, default=1.0, help="only this share of each group")
    p.add_argument("--seed", type=int, default=11, help="another sample of the held-out prompts; the card's is 11")
    a = p.parse_args()
    table = evaluate(load(a.model), Tokenizer.load(a.tokenizer), a.wrong, a.only, a.share, a.seed)
    if a.json:
        record = json.load(open(a.json)) if os.path.exists(a.json) else {}
        record["accuracy"] = table
        with open(a.json, "w") as f:
            json.dump(record, f, indent=1)


if __name__ == "__main__":
    main()
