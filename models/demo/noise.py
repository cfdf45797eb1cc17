"""Spelling noise and invented names: what a careless or curious user types."""
import functools
import random
import re
import zlib

import data

LETTERS = "abcdefghijklmnopqrstuvwxyz"
KNOWN = [w.lower() for w in
         sorted({p for c in data.COUNTRIES for p in c[:3]} | set(data.CITIES) | set(data.CAPITAL_OF))]


def held(key, parts=5):
    """True for the share (1 in `parts`) of keys that training never sees."""
    return zlib.crc32(key.encode()) % parts == 0


SLIPS = ("swap", "drop", "double")
MOSTLY_SLIPS = 2 * SLIPS + ("replace",)
EVEN = SLIPS + 3 * ("replace",)           # as many wrong letters as slips; stage 3


def edit(word, rng, kinds=MOSTLY_SLIPS):
    """One small typo: two letters swapped, one dropped, one doubled, or one replaced."""
    kind = rng.choice(kinds)
    i = rng.randrange(1, len(word) - 1) if len(word) > 3 else rng.randrange(len(word) - 1)
    if kind == "swap":
        return word[:i] + word[i + 1] + word[i] + word[i + 2:]
    if kind == "drop":
        return word[:i] + word[i + 1:]
    if kind == "double":
        return word[:i] + word[i] + word[i:]
    return word[:i] + rng.choice(LETTERS) + word[i + 1:]


def distance(a, b):
    """Edit distance with swaps of neighbours (optimal string alignment)."""
    d = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1)
    return d[-1][-1]


@functools.lru_cache(1 << 16)
def kinds_of_letter(name):
    return frozenset(name)


def close(names, s, most):
    """Those of the names that are at most `most` edits from s; an edit changes at most two kinds of letter, so few
    of them have to be measured."""
    mine = kinds_of_letter(s)
    return (k for k in names if abs(len(k) - len(s)) <= most and len(mine ^ kinds_of_letter(k)) <= 2 * most
            and distance(k, s) <= most)


def near(names, s, most):
    return any(True for _ in close(names, s, most))


@functools.lru_cache(1 << 16)
def neighbours(low):
    """Known names within one edit of a lower-case string."""
    return list(close(KNOWN, low, 1))


def typo(word, rng, test=False, kinds=MOSTLY_SLIPS):
    """A misspelling of `word` that is nearest to it alone; held-out ones only when `test`."""
    for _ in range(60):
        t = edit(word, rng, kinds)
        if t != word and held("typo|" + t.lower()) == test and \
                all(k == word.lower() for k in neighbours(t.lower())):
            return t
    return word


def typo_in(text, rng, focus=None, test=False, kinds=MOSTLY_SLIPS):
    """A misspelling somewhere in `text`: in `focus` if given, else in some longer word."""
    words = re.findall(r"[A-Za-z]{4,}", focus if focus else text)
    if not words:
        return text
    w = rng.choice(words)
    at = text.rfind(w)
    return text if at < 0 else text[:at] + typo(w, rng, test, kinds) + text[at + len(w):]


def noisy(text, rng, focus=None, lower=0.2, wrong=0.2, aim=0.7, kinds=MOSTLY_SLIPS):
    """The prompt as typed: sometimes lower case, sometimes with one small typo (`aim`: how often in `focus`)."""
    r = rng.random()
    if r < wrong:
        text = typo_in(text, rng, focus if rng.random() < aim else None, kinds=kinds)
        return text.lower() if rng.random() < 0.4 else text
    return text.lower() if r < wrong + lower else text


_ON = "b br c ch d dr f g gl h j k kr l m n p qu r s sh st t th tr v w y z".split() + [""]
_MID = "a e i o u ai ea ou".split()
_END = ["", "n", "r", "s", "l", "m", "nd", "rk", "th"]
_TAIL = ["ia", "land", "stan", "a", "o", "is", "ville", "burg", "", "", "", "or", "ique", "ey"]


def invented(rng, test=False):
    """A pronounceable place name that does not exist (and is no near miss of a taught one)."""
    while True:
        s = "".join(rng.choice(_ON) + rng.choice(_MID) + rng.choice(_END)
                    for _ in range(rng.choice((1, 2, 2)))) + rng.choice(_TAIL)
        if 4 <= len(s) <= 11 and held("invented|" + s) == test and \
                not near(KNOWN, s, 2):
            return s.capitalize()


def crossed(rng):
    """The beginning of one taught name with the end of another: sounds taught, is none (nor a near miss of one)."""
    while True:
        a, b = rng.sample(KNOWN, 2)
        s = a[:rng.randrange(2, max(3, len(a) - 1))] + b[-rng.randrange(2, max(3, len(b) - 1)):]
        if 4 <= len(s) <= 12 and s.isalpha() and not held("invented|" + s) and not near(KNOWN, s, 2) and \
                not near(TESTED, s, 1):
            return s.capitalize()


def hard_stranger(rng):
    """A place that was never taught, of the kinds most easily taken for a taught one; training only."""
    return rng.choice(REAL) if rng.random() < 0.5 else crossed(rng) if rng.random() < 0.6 else invented(rng)


def stranger(rng, test=False):
    """A place the model was never taught: real or invented."""
    real = data.UNTAUGHT_TEST if test else data.UNTAUGHT
    return rng.choice(real) if rng.random() < 0.35 else invented(rng, test)


TESTED = [w.lower() for w in data.UNTAUGHT_TEST]
REAL = [w for w in data.UNTAUGHT + data.UNTAUGHT_MORE
        if not near(KNOWN, w.lower(), 1) and not near(TESTED, w.lower(), 1)]


if __name__ == "__main__":
    r = random.Random(0)
    print([typo("France", r) for _ in range(8)], [invented(r) for _ in range(12)])
