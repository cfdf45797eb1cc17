"""Runs notebooks' cells against `boot_transformers` or a GGUF on tapline, and writes a JSON line with the `figures` of each.

    transformer-lens-notebook.py transformers|tapline MODEL NOTEBOOK...

On tapline, only the lines that the notebook itself names are changed.
"""
import json
import os
import re
import sys


def figures_of(path, engine):
    with open(path, encoding="utf8") as file:
        cells = json.load(file)["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    if engine == "tapline":
        introduction = "".join(cells[0]["source"])
        changed = re.search(r"```python\n(.*?)```", introduction, re.S)[1].strip().split("\n")
        assert len(changed) <= 3, f"{len(changed)} lines are changed"
        kinds = {"import": r"(?m)^from transformer_lens\..*$", "bridge =": r"(?m)^bridge = .*$"}
        for line in changed:
            pattern = next(pattern for start, pattern in kinds.items() if line.startswith(start))
            sources[0], count = re.subn(pattern, lambda _: line, sources[0])
            assert count == 1, f"{line} replaces {count} lines"
    names = {}
    for source in sources:
        exec(compile(source, path, "exec"), names)
    close = getattr(names["bridge"], "close", None)
    if close is not None:
        close()
    return names["figures"]


def main(engine, model, *paths):
    os.environ["MODEL"] = model
    print("\n" + json.dumps([figures_of(path, engine) for path in paths]))


main(*sys.argv[1:])
