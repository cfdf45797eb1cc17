"""What an installation without NumPy can do: everything but arrays."""

import ast
import sys
from pathlib import Path

import agent_research
import tapline

for package in (agent_research, tapline):
    for path in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [str(node.module)]
            for name in names:
                top = name.split(".")[0]
                known = top in sys.stdlib_module_names
                assert known or (path.stem in ("arrays", "_job") and top == "numpy"), (path, name)

assert "tapline.arrays" not in sys.modules
fields = {"id": "x", "operation": "inspect", "status": "completed", "result": {"artifacts": []}}
try:
    tapline.Job(fields, lambda *_: b"").layers()
except tapline.TaplineError as error:
    print(error)
