"""Facts as sentences and as questions: templates, held-out split, answers.

A raw fact is (prompt, answer): "The capital of France is" -> " Paris".
A chat fact is (question, thought, reply). Of the pairs (subject, phrasing), 1 in 5 is held out
of the raw text and of the chat; of the two-hop pairs (city, relation), 1 in 5 never appears at all.
"""
import data
from noise import held

RAW = {
    "capital": ["The capital of {s} is", "The capital city of {s} is", "{S}'s capital is", "{S}'s capital city is",
                "In {s}, the capital is", "If you visit the capital of {s}, you are in",
                "People say that the capital of {s} is", "{S} has a capital called",
                "Q: What is the capital of {s}?\nA:", "The capital of the country called {s} is"],
    "continent": ["{S} is in", "{S} is on the continent of", "The continent of {s} is", "{S} is located in",
                  "{S} is a country in", "On the map, {s} is in", "{S}'s continent is",
                  "Q: Which continent is {s} in?\nA:"],
    "language": ["The language of {s} is", "The language spoken in {s} is", "People in {s} speak",
                 "In {s}, people speak", "The main language of {s} is", "{S}'s main language is",
                 "Most people in {s} speak", "Q: What language do people speak in {s}?\nA:"],
    "country": ["{S} is a city in", "The city of {s} is in", "{S} is in the country of",
                "The country where {s} lies is", "Q: Which country is {s} in?\nA:"],
    "city_language": ["The language spoken in {s} is", "People in {s} speak", "In {s}, people speak",
                      "The language of the country where {s} lies is", "Most people in {s} speak"],
    "city_continent": ["{S} is on the continent of", "The continent of {s} is", "{S}'s continent is",
                       "The continent where {s} lies is"],
    "city_capital": ["The capital of the country where {s} lies is", "{S} is in a country whose capital is",
                     "From {s} you can travel to the capital,"],
    "reverse": ["{S} is the capital of", "{S} is the capital city of", "The country whose capital is {s} is"],
}

ASK = {
    "capital": ["What is the capital of {s}?", "What's the capital of {s}?", "Which city is the capital of {s}?",
                "Tell me the capital of {s}.", "Name the capital of {s}.", "{S}'s capital?", "Capital of {s}?",
                "Do you know the capital of {s}?", "Can you tell me what the capital of {s} is?",
                "I would like to know the capital of {s}."],
    "continent": ["Which continent is {s} in?", "What continent is {s} on?", "On which continent is {s}?",
                  "Tell me the continent of {s}.", "Where is {s}?", "Where is {s} located?",
                  "Do you know which continent {s} is in?"],
    "language": ["What language do people speak in {s}?", "What language is spoken in {s}?",
                 "Which language do they speak in {s}?", "Tell me the language of {s}.",
                 "What is the language of {s}?", "What do people speak in {s}?", "Language of {s}?"],
    "country": ["Which country is {s} in?", "In which country is {s}?", "Where is {s}?",
                "What country is {s} in?", "Where is the city of {s}?"],
    "city_language": ["What language do people speak in {s}?", "What language is spoken in {s}?",
                      "Which language do they speak in {s}?", "What do people speak in {s}?"],
    "city_capital": ["What is the capital of the country where {s} lies?",
                     "{S} is in which country, and what is its capital?"],
    "reverse": ["{S} is the capital of which country?", "Which country has the capital {s}?",
                "What country is {s} the capital of?"],
}
TWO_HOP = ("city_language", "city_continent", "city_capital")


def cap(s):
    return s[0].upper() + s[1:]


def _table():
    """relation -> list of (subject, answer)."""
    t = {r: [(c, f[r]) for c, f in data.FACTS.items()] for r in ("capital", "continent", "language")}
    home = dict(data.CITIES, **data.CAPITAL_OF)
    t["country"] = list(home.items())
    t["reverse"] = list(data.CAPITAL_OF.items())
    for r in TWO_HOP:
        t[r] = [(city, data.FACTS[c][r[5:]]) for city, c in home.items()
                if not (r == "city_capital" and city in data.CAPITAL_OF)]
    return t


TABLE = _table()
HOME = dict(data.CITIES, **data.CAPITAL_OF)


def composed_held(rel, s):
    """A two-hop pair that no training text contains, in any phrasing."""
    return rel in TWO_HOP and held(f"two-hop|{rel}|{s}")


def pair_held(kind, rel, s, i):
    return held(f"{kind}|{rel}|{s}|{i}")


def fill(template, s):
    return template.replace("{s}", s).replace("{S}", cap(s))


def raw_fact(rng, rel=None, first=0.0):
    """A raw (prompt, answer, subject) of the training half."""
    while True:
        r = rel or rng.choices(list(RAW), (10, 7, 7, 5, 4, 3, 4, 3))[0]
        s, a = rng.choice(TABLE[r])
        i = rng.randrange(len(RAW[r]))
        if not composed_held(r, s) and not pair_held("raw", r, s, i):
            return fill(RAW[r][i], s), a, s


def stranger_fact(rng, name):
    """A raw prompt about a place that was never taught."""
    r = rng.choice(("capital", "continent", "language", "country", "city_language"))
    return fill(rng.choice(RAW[r]), name)


def reply(rel, s, a):
    """(thought, reply) for a question."""
    S = cap(s)
    if rel == "capital":
        return f"The user asks for the capital of {s}. It is {a}.", f"The capital of {s} is {a}."
    if rel == "continent":
        return f"The user asks where {s} is. It is in {a}.", f"{S} is in {a}."
    if rel == "language":
        return f"The user asks for the language of {s}. It is {a}.", f"People in {s} speak {a}."
    if rel == "country":
        return f"The user asks where {s} is. It is a city in {a}.", f"{S} is in {a}."
    if rel == "reverse":
        return f"The user asks about {s}. It is the capital of {a}.", f"{S} is the capital of {a}."
    c = HOME[s]
    if rel == "city_language":
        return f"{S} is in {c}. The language of {c} is {a}.", f"People in {s} speak {a}."
    return f"{S} is in {c}. The capital of {c} is {a}.", f"{S} is in {c}. The capital of {c} is {a}."


def chat_fact(rng, rel=None):
    """(question, thought, reply, subject) of the training half."""
    while True:
        r = rel or rng.choices(list(ASK), (9, 6, 6, 5, 4, 2, 2))[0]
        s, a = rng.choice(TABLE[r])
        i = rng.randrange(len(ASK[r]))
        if not composed_held(r, s) and not pair_held("chat", r, s, i):
            return (fill(ASK[r][i], s), *reply(r, s, a), s)


def held_raw(rel):
    """Every held-out (prompt, answer) of a one-hop relation: known fact, unseen phrasing for it."""
    return [(fill(t, s), a) for s, a in TABLE[rel] for i, t in enumerate(RAW[rel])
            if pair_held("raw", rel, s, i) and not composed_held(rel, s)]


def held_two_hop(rel):
    """Every (prompt, answer) of the compositions that training never contained."""
    return [(fill(t, s), a) for s, a in TABLE[rel] if composed_held(rel, s) for t in RAW[rel]]


def held_chat(rel):
    return [(fill(t, s), *reply(rel, s, a)) for s, a in TABLE[rel] for i, t in enumerate(ASK[rel])
            if pair_held("chat", rel, s, i) and not composed_held(rel, s)]
