"""Byte-level BPE in the style of GPT-2 with Qwen2's pretokenizer: training, encoding, decoding.

Merges are learned from a sample of the corpus. Words of WHOLE (places, languages, names,
adjectives, ...) count as frequent, so that with a leading space each is one token: answers are
then one row of the logit lens. Lower-case and misspelt forms stay several tokens.
"""
import collections
import json
import random
import re
import sys

import corpus
import data

SPECIALS = ["<|endoftext|>", "<|bos|>", "<|pad|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
EOS, BOS, PAD, IM_START, IM_END, THINK, END_THINK = SPECIALS
# llama.cpp's qwen2 pretokenizer, for text whose letters and digits `re` and Unicode agree on
PRETOKEN = re.compile(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?[^\W\d_]+|\d|"
                      r" ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLIT = re.compile("(" + "|".join(re.escape(s) for s in SPECIALS) + ")")
WHOLE = sorted({w for c in data.COUNTRIES for part in c for w in part.split()} | set(data.NAMES) | set(data.PLACES)
               | set(data.OBJECTS) | set(data.POSITIVE) | set(data.NEGATIVE) | set(data.NOUNS) | set(data.WORDS)
               | {w for p in data.OPPOSITES for w in p} | set(data.DAYS) | set(data.MONTHS)
               | {"positive", "negative", "unknown"})


def byte_letters():
    """GPT-2's printable letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {}, 0
    for b in range(256):
        table[b] = chr(b) if b in plain else chr(256 + extra)
        extra += b not in plain
    return table


LETTER = byte_letters()
BYTE = {v: k for k, v in LETTER.items()}


def letters(text):
    return "".join(LETTER[b] for b in text.encode())


def learn(counts, n):
    """The first n merges of byte-pair encoding over {word: count}."""
    words = {w: list(letters(w)) for w in counts}
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for w, s in words.items():
        for p in zip(s, s[1:]):
            pairs[p] += counts[w]
            where[p].add(w)
    merges = []
    while len(merges) < n:
        best = max(pairs, key=lambda p: (pairs[p], p))
        if pairs[best] <= 0:
            break
        merges.append(best)
        for w in sorted(where.pop(best)):
            s, out, i = words[w], [], 0
            for p in zip(s, s[1:]):
                pairs[p] -= counts[w]
            while i < len(s):
                hit = i + 1 < len(s) and (s[i], s[i + 1]) == best
                out.append(s[i] + s[i + 1] if hit else s[i])
                i += 2 if hit else 1
            words[w] = out
            for p in zip(out, out[1:]):
                pairs[p] += counts[w]
                where[p].add(w)
        del pairs[best]
    return merges


class Tokenizer:
    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.tokens = [LETTER[b] for b in range(256)] + ["".join(m) for m in self.merges] + SPECIALS
        self.id = {t: i for i, t in enumerate(self.tokens)}
        self.cache = {}

    @classmethod
    def load(cls, path):
        with open(path) as f:
            return cls(json.load(f))

    def special(self, s):
        return self.id[s]

    def _word(self, w, skip=lambda: False):
        s, none = list(letters(w)), 1 << 30
        while len(s) > 1:
            r, i = min((none if skip() else self.rank.get(p, none), i) for i, p in enumerate(zip(s, s[1:])))
            if r == none:
                break
            s[i:i + 2] = [s[i] + s[i + 1]]
        return [self.id[t] for t in s]

    def loose(self, text, rng, share):
        """Tokens of plain text or chat where each merge is left out now and then (BPE dropout, Provilkov et
        al. 2020): the same letters in other pieces, as a misspelling would cut them."""
        out = []
        for part in SPLIT.split(text):
            out += [self.id[part]] if part in SPECIALS else \
                [t for w in PRETOKEN.findall(part) for t in self._word(w, lambda: rng.random() < share)]
        return out

    def encode(self, text):
        out = []
        for part in SPLIT.split(text):
            if part in self.id and part in SPECIALS:
                out.append(self.id[part])
                continue
            for w in PRETOKEN.findall(part):
                if w not in self.cache:
                    if len(self.cache) > 200000:
                        self.cache.clear()
                    self.cache[w] = self._word(w)
                out += self.cache[w]
        return out

    def decode(self, ids):
        out = b""
        for i in ids:
            t = self.tokens[i]
            out += t.encode() if t in SPECIALS else bytes(BYTE[c] for c in t)
        return out.decode(errors="replace")


def train(path, docs=40000, vocab=1792, seed=1):
    rng, counts = random.Random(seed), collections.Counter()
    for _ in range(docs):
        for part in SPLIT.split("".join(t for t, _ in corpus.document(rng))):
            if part not in SPECIALS:
                counts.update(PRETOKEN.findall(part))
    for w in WHOLE:
        counts[" " + w] += docs // 20
    merges = learn(counts, vocab - 256 - len(SPECIALS))
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(m) for m in merges) + "\n]\n")
    return Tokenizer(merges)


if __name__ == "__main__":
    t = train(sys.argv[1] if len(sys.argv) > 1 else "tokenizer.json")
    whole = sum(len(t.encode(" " + w)) == 1 for w in WHOLE)
    print(f"{len(t.tokens)} tokens; {whole} of {len(WHOLE)} whole words are one token")
