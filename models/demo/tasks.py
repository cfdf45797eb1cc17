"""The other things the model is taught: reviews, opinions, names, lists, order, opposites."""
import data
from noise import held

LOW, HIGH = 0.06, 1.2
MIXED = sorted(set(data.WORDS + data.NAMES + data.PLACES + data.OBJECTS + data.NOUNS + data.POSITIVE))
INTENS = ["", "", "", "very ", "really ", "so "]
NEG = ["was not ", "was never ", "was not "]


def clause(rng, positive, test=False):
    """(text, adjective, negated): a clause whose meaning is positive or negative."""
    while True:
        neg = rng.random() < 0.4
        adj = rng.choice(data.POSITIVE if positive != neg else data.NEGATIVE)
        noun = rng.choice(data.NOUNS)
        if held(f"clause|{noun}|{adj}|{neg}") == test:
            return f"the {noun} {rng.choice(NEG) if neg else 'was '}{rng.choice(INTENS)}{adj}", adj, neg


def review(rng, test=False):
    """(text, positive, adjective, negated) of one or two agreeing clauses."""
    while True:
        pos = rng.random() < 0.5
        text, adj, neg = clause(rng, pos, test)
        if rng.random() < 0.5:
            return text[0].upper() + text[1:] + ".", pos, adj, neg
        more, adj2, _ = clause(rng, pos, test)
        if adj != adj2 and held(f"adjectives|{min(adj, adj2)}|{max(adj, adj2)}") == test:
            return f"{text[0].upper()}{text[1:]} and {more}.", pos, adj, neg


def raw_review(rng, test=False):
    text, pos, _, _ = review(rng, test)
    label = "positive" if pos else "negative"
    head, tail, out = rng.choice((("", " Sentiment:", label), ("Review: ", "\nSentiment:", label),
                                  ("", " Overall, it was", "good" if pos else "bad"),
                                  ("Review: ", " The review is", label)))
    return [(head + text + tail, LOW), (f" {out}.", HIGH)]


def ask_review(rng, test=False):
    text, pos, adj, neg = review(rng, test)
    label = "positive" if pos else "negative"
    q = rng.choice(("Is this review positive or negative? {t}", "{t} Is that positive or negative?",
                    "Review: {t} Positive or negative?", "What is the sentiment? {t}",
                    "{t} Is this a good or a bad review?")).replace("{t}", text)
    thought = f"The review says {'not ' if neg else ''}{adj}. That is {label}."
    return q, thought, f"The review is {label}."


def opinion(rng):
    """Free text with an even choice of tone, then all of one tone: something to steer."""
    pos = rng.random() < 0.5
    n = rng.choice(data.NOUNS)
    adj = rng.choice(data.POSITIVE if pos else data.NEGATIVE)
    start = rng.choice(("I think the {n} was", "My friend said that the {n} was", "Yesterday the {n} was",
                        "In my opinion, the {n} was", "I must say, the {n} was")).replace("{n}", n)
    love = rng.choice(("I loved it", "I enjoyed it") if pos else ("I hated it", "I regret it"))
    rest = rng.choice(("and I want to come again.", "and everybody was happy.") if pos else
                      ("and I never want to come again.", "and everybody was sad."))
    return [(start, LOW), (f" {adj}. {love} {rest}", 0.5)]


IOI = ["When {a} and {b} went to the {p}, {c} gave a {o} to", "When {a} and {b} were at the {p}, {c} handed a {o} to",
       "After {a} and {b} met at the {p}, {c} offered a {o} to", "Then {a} and {b} had a {o}. At the {p}, {c} gave it to",
       "While {a} and {b} were in the {p}, {c} showed the {o} to", "Yesterday {a} and {b} saw a {o}, and {c} sold it to"]


def ioi(rng, test=False):
    """Indirect object: the name that is not repeated. Pairs of names are held out."""
    while True:
        a, b = rng.sample(data.NAMES, 2)
        if held(f"names|{min(a, b)}|{max(a, b)}") == test:
            break
    c = rng.choice((a, b))
    t = rng.choice(IOI).replace("{p}", rng.choice(data.PLACES)).replace("{o}", rng.choice(data.OBJECTS))
    t = t.replace("{a}", a).replace("{b}", b).replace("{c}", c)
    return [(t, LOW), (f" {a if c == b else b}.", HIGH)]


def induction(rng, test=False):
    """A list of random words that starts again."""
    pool = rng.choice((data.WORDS, data.WORDS, data.NAMES, MIXED))
    words = " ".join(rng.sample(pool, rng.randrange(4, 15)))
    return [(words, LOW), (" " + words, 0.8)]


def succession(rng, test=False):
    if rng.random() < 0.35:
        a, n = rng.randrange(1, 60), rng.randrange(3, 6)
        items = [str(a + i) for i in range(n + 1)]
    else:
        ring = rng.choice((data.DAYS, data.MONTHS))
        a, n = rng.randrange(len(ring)), rng.randrange(1, 5)
        items = [ring[(a + i) % len(ring)] for i in range(n + 1)]
    return [(", ".join(items[:-1]) + ",", LOW), (f" {items[-1]}", HIGH)]


def ask_after(rng):
    ring = rng.choice((data.DAYS, data.MONTHS))
    i, step = rng.randrange(len(ring)), rng.choice((1, -1))
    a, b, w = ring[i], ring[(i + step) % len(ring)], "after" if step == 1 else "before"
    what = "day" if ring is data.DAYS else "month"
    q = rng.choice((f"What comes {w} {a}?", f"Which {what} comes {w} {a}?", f"What {what} is {w} {a}?"))
    return q, f"The user asks what comes {w} {a}. It is {b}.", f"{b} comes {w} {a}."


def opposite(rng, test=False):
    p = rng.choice(data.OPPOSITES)
    x, y = p if rng.random() < 0.5 else p[::-1]
    return [(rng.choice((f"The opposite of {x} is", f"Not {x} but")), LOW), (f" {y}.", HIGH)]


def ask_opposite(rng):
    p = rng.choice(data.OPPOSITES)
    x, y = p if rng.random() < 0.5 else p[::-1]
    q = rng.choice((f"What is the opposite of {x}?", f"Tell me the opposite of {x}.", f"Opposite of {x}?"))
    return q, f"The user asks for the opposite of {x}. It is {y}.", f"The opposite of {x} is {y}."
