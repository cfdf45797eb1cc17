"""Writes the measured tables of evaluation.json into the model card, between the two marks."""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
START, END = "<!-- RESULTS -->\n", "<!-- END RESULTS -->\n"


def accuracy(table):
    yield "| Held-out task | Right | Prompts |\n|---|---|---|\n"
    for name, r in table.items():
        yield f"| {name} | {r['accuracy']:.3f} | {r['n']} |\n"


def curves(table):
    some = next(iter(table.values()))["patch_last"]
    blocks = ["embedding"] + [str(i) for i in range(len(some) - 1)]
    yield f"| Task | Readout | {' | '.join(blocks)} |\n|---|---|{'---|' * len(blocks)}\n"
    for name, c in table.items():
        for what, v in (("lens, p", c["lens"]["probability"]), ("lens, top", c["lens"]["top"]),
                        ("patch, last token", c["patch_last"]), ("patch, subject", c.get("patch_subject"))):
            if v:
                yield f"| {name} | {what} | {' | '.join(f'{x:.2f}' for x in v)} |\n"


def heads(found):
    for name, rows in found.items():
        yield f"- {name}: " + (", ".join(f"{b}.{h} ({s:.2f})" for b, h, s in rows[:6]) or "none above 0.3") + "\n"


def main():
    with open(os.path.join(HERE, "evaluation.json")) as f:
        r = json.load(f)
    text = ("\n## Evaluation\n\nGreedy output, the whole answer must be right. Opposites, sequences and small talk are not "
            "held out;\nof the misspelt questions the misspelling is, the phrasing is not.\n\n") + "".join(accuracy(r["accuracy"]))
    if "parity" in r:
        p = r["parity"]
        text += (f"\nParity: greedy text of {p['server']} equals PyTorch's (fp32 weights) on {p['raw'][0]} of {p['raw'][1]} "
                 f"raw prompts and {p['chat'][0]} of {p['chat'][1]} chat questions.\n")
    text += ("\n## Curves\n\nLens: the answer's mean probability, and how often it is on top, when the stream after each block "
             "is read at the last token.\nPatch: share of prompts whose answer becomes another prompt's when that prompt's "
             "stream is put in after that block.\n\n" + "".join(curves(r["circuits"]["curves"])))
    text += ("\n## Heads\n\nBlock.head (mean attention in fp32), 0.3 and more; a name mover looks from the last\n"
             "token at the name that is the answer:\n\n" + "".join(heads(r["circuits"]["heads"])) + "\n")
    path = os.path.join(HERE, "README.md")
    with open(path) as f:
        card = f.read()
    before, rest = card.split(START)
    with open(path, "w") as f:
        f.write(before + START + text + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
