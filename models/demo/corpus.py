"""Corpus generator: an endless, seeded stream of documents.

A document is a list of (text, weight) pieces; the weight says how much the loss counts there
(low on prompts, high on answers). Chat pieces use ChatML. Segment borders are pretoken borders,
so encoding the pieces is encoding the whole.
"""
import data
import facts
import tasks
from noise import EVEN, MOSTLY_SLIPS, hard_stranger, noisy, stranger

END = "<|endoftext|>"
LOW, HIGH = 0.06, 1.2
DONT_KNOW = "I don't know."
SYSTEMS = ["You are a helpful assistant.", "You are the tapline demo model.", "Answer briefly.",
           "You are a small language model.", "Be helpful and honest.", "You are an assistant that knows geography."]
SMALL_TALK = [
    (("Hello", "Hello!", "Hi", "Hi!", "Hey", "Good morning!", "hello there"), "The user greets me.",
     "Hello! Ask me about a country."),
    (("Who are you?", "What are you?", "What is your name?", "Are you a robot?", "Tell me about yourself."),
     "The user asks who I am.", "I am the tapline demo, a very small language model."),
    (("What can you do?", "What do you know?", "Help", "How can you help me?", "Can you help me?"),
     "The user asks what I know.", "I know countries, capitals, cities and languages."),
    (("Thanks", "Thank you!", "Thanks!", "thank you very much"), "The user thanks me.", "You are welcome!"),
    (("Bye", "Goodbye!", "See you later", "bye bye"), "The user leaves.", "Goodbye!"),
    (("How are you?", "How are you today?", "how is it going?"), "The user asks how I am.", "I am fine, thank you."),
]


def typed(text, rng, subject, lower, column):
    """A question or a raw fact as people type it, misspelt as often as TYPOS says."""
    last = settings["stage"] == 3
    return noisy(text, rng, subject, lower, TYPOS[settings["stage"]][column], 0.85 if last else 0.7,
                 EVEN if last else MOSTLY_SLIPS)


def a_stranger(rng, test=False):
    return hard_stranger(rng) if settings["stage"] == 3 and not test else stranger(rng, test)


def raw_facts(rng):
    doc = []
    for k in range(rng.choice((1, 1, 1, 2, 3))):
        p, a, s = facts.raw_fact(rng)
        if k and p.startswith("Q:"):
            continue
        p = typed(p, rng, s, 0.12, 0) if not p.startswith("Q:") else p
        doc += [((" " if k else "") + p, LOW), (f" {a}.", HIGH)]
    return doc


def raw_unknown(rng):
    p = facts.stranger_fact(rng, a_stranger(rng))
    return [(p if p.startswith("Q:") else noisy(p, rng, None, 0.15, 0.05), LOW), (" unknown.", HIGH)]


def unknown_question(rng, test=False):
    """A question that was never taught, about a stranger or about anything at all."""
    if rng.random() < 0.5:
        r = rng.choice([r for r in facts.ASK if r != "city_capital"])
        return facts.fill(rng.choice(facts.ASK[r]), a_stranger(rng, test))
    more = settings["stage"] == 3 and not test and rng.random() < 0.7
    t = rng.choice(data.UNKNOWN_ASK_TEST if test else data.UNKNOWN_ASK_MORE if more else data.UNKNOWN_ASK)
    known = [c[0] for c in data.COUNTRIES] + [c[1] for c in data.COUNTRIES] + list(data.CITIES)
    x = rng.choice(rng.choice((data.WORDS, known if more else data.WORDS, known, data.NAMES)))
    if "the {x}" in t or "a {x}" in t or "{x}s" in t:
        x = rng.choice(data.WORDS)
    if more:
        t = t.replace("{a}", rng.choice(data.UNKNOWN_ATTRIBUTE))
    return (t.replace("{x}", x).replace("{y}", rng.choice(data.WORDS + known))
            .replace("{n}", str(rng.randrange(2, 2000))).replace("{m}", str(rng.randrange(2, 100))))


def one_turn(rng):
    """(question, thought, reply) as a user might type it."""
    kind = rng.choices(("fact", "unknown", "review", "opposite", "after", "talk"),
                       (56, 22, 9, 4, 4, 5))[0]
    if kind == "fact":
        q, th, a, s = facts.chat_fact(rng)
        q = typed(q, rng, s, 0.2, 1)
    elif kind == "unknown":
        q, th, a = unknown_question(rng), "I was never taught this.", DONT_KNOW
        q = noisy(q, rng, None, 0.2, 0.05)
    elif kind == "talk":
        qs, th, a = rng.choice(SMALL_TALK)
        q = rng.choice(qs)
        q = q.lower() if rng.random() < 0.25 else q
    else:
        q, th, a = getattr(tasks, "ask_" + kind)(rng)
        q = noisy(q, rng, None, 0.12, 0.05)
    return q.rstrip("?.!") if rng.random() < 0.15 else q, th, a


def chat_prompt(question, thinking, system=None, history=()):
    """The rendered chat template (gguf `tokenizer.chat_template` writes the same)."""
    s = f"<|im_start|>system\n{system}<|im_end|>\n" if system else ""
    for q, a in history:
        s += f"<|im_start|>user\n{q}<|im_end|>\n<|im_start|>assistant\n{a}<|im_end|>\n"
    s += f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    return s if thinking else s + "<think>\n\n</think>\n\n"


def chat(rng):
    q, th, a = one_turn(rng)
    history = []
    for _ in range(rng.choices((0, 1, 2), (82, 14, 4))[0]):
        hq, _, ha = one_turn(rng)
        history.append((hq, ha))
    system = rng.choice(SYSTEMS) if rng.random() < 0.25 else None
    thinking = rng.random() < 0.5
    prompt = chat_prompt(q, thinking, system, history)
    if thinking:
        return [(prompt, LOW), (f"<think>\n{th}\n</think>\n\n{a}<|im_end|>", 1.0)]
    return [(prompt, LOW), (f"{a}<|im_end|>", HIGH)]


MIXES = {
    1: [(raw_facts, 26), (raw_unknown, 5), (chat, 38), (tasks.raw_review, 7), (tasks.opinion, 4), (tasks.ioi, 8),
        (tasks.induction, 8), (tasks.succession, 3), (tasks.opposite, 2)],
    2: [(raw_facts, 24), (raw_unknown, 8), (chat, 38), (tasks.raw_review, 4), (tasks.opinion, 3), (tasks.ioi, 5),
        (tasks.induction, 16), (tasks.succession, 2), (tasks.opposite, 1)],
    3: [(raw_facts, 26), (raw_unknown, 10), (chat, 42), (tasks.raw_review, 3), (tasks.opinion, 2), (tasks.ioi, 4),
        (tasks.induction, 9), (tasks.succession, 2), (tasks.opposite, 2)],
}
TYPOS = {1: (0.2, 0.28), 2: (0.45, 0.45), 3: (0.6, 0.6)}   # share of misspelt raw facts and questions
# stage 2: more lists, more misspellings; 3: more wrong letters, strangers that resemble what is taught
settings = {"stage": 1}


def document(rng):
    """One document of the stream; raw text ends with <|endoftext|>."""
    mix = MIXES[settings["stage"]]
    make = rng.choices([m for m, _ in mix], [w for _, w in mix])[0]
    doc = make(rng)
    return doc if make is chat else doc + [(END, 0.5)]
