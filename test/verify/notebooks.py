"""Runs a notebook from its first cell to its last and says what its cells show: a JSON line.

    notebooks.py NOTEBOOK [EXECUTED]

EXECUTED: where the notebook with its outputs goes. A cell that raises ends the program with its traceback.
"""
import json
import sys

import nbformat
from nbclient import NotebookClient


def main(path, executed=None):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kept = sum(bool(cell.outputs) or cell.execution_count is not None for cell in code)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [
        {kind: str(data) for kind, data in output.get("data", {}).items()} for cell in code for output in cell.outputs
    ]
    if executed is not None:
        nbformat.write(notebook, executed)
    print(json.dumps({"cells": len(code), "kept": kept, "shown": shown}))


main(*sys.argv[1:])
