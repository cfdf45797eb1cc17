"""An installation without NumPy and pandas: everything but arrays and frames works."""

import ast
import sys
from pathlib import Path

import agent_research
import tapline_lab

# Who may ask for what: where it is asked for, or for type checkers only.
others = {
    "_datasets": {"datasets", "pyarrow"},
    "_driver": {"numpy", "transformer_lens"},
    "_forward": {"numpy"},
    "_job": {"numpy", "pandas"},
    "_generated": {"numpy"},
    "_lens": {"numpy"},
    "_remote": {"fsspec"},
    "_row_files": {"fsspec", "numpy"},
    "_rows": {"numpy"},
    "_shuffled": {"numpy"},
    "_torch_rows": {"torch"},
    "_weights": {"numpy"},
    "arrays": {"numpy"},
    "frames": {"pandas"},
    "inspect": {"anyio", "inspect_ai", "numpy"},
    "ray": {"numpy", "ray"},
    "transformer_lens": {"torch", "transformer_lens"},
}

for package in (agent_research, tapline_lab):
    for path in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [str(node.module)]
            for name in names:
                top = name.split(".")[0]
                assert top in sys.stdlib_module_names or top in others.get(path.stem, ()), (path, name)

assert "tapline_lab.arrays" not in sys.modules and "tapline_lab.frames" not in sys.modules
fields = {"id": "x", "operation": "inspect", "status": "completed", "result": {"artifacts": []}}
try:
    tapline_lab.Job(fields, lambda *_: b"").layers()
except tapline_lab.TaplineError as error:
    print(error)

losses = [{"step": 0, "loss": 2.0}, {"step": 10, "loss": 1.0}]
trained = {"reports": [{"layer": 3, "losses": losses}]}
job = tapline_lab.Job({"id": "y", "operation": "sae", "status": "completed", "result": trained}, lambda *_: b"")
assert job.figure().svg.count("<polyline") == 1
try:
    job.frame()
except tapline_lab.TaplineError as error:
    print(error)
