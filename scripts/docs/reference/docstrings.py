"""Prints the reference of the Python packages, from their sources, as JSON: text by path in the repository.

Nothing is imported or executed: signatures and docstrings are read from the syntax tree, so no dependency is needed.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

PAGES = {
    "docs/reference/python-tapline-lab.md": {
        "package": "tapline_lab",
        "title": "Python: tapline_lab",
        "about": "[Python](../python.md) shows how to use it.",
        "first": ["load", "connect", "Model", "Run", "Cache", "Lab", "Job"],
        # Classes that public functions return.
        "more": {"_forward": ["Run", "Cache"], "_weights": ["Weights", "PerBlock"]},
        "modules": ["arrays", "figures", "frames", "transformer_lens"],
    },
    "docs/reference/python-agent-research.md": {
        "package": "agent_research",
        "title": "Python: agent_research",
        "about": "[Python](../python.md#studies) shows how to use it.",
        "first": ["ResearchClient"],
        "more": {},
        "modules": [],
    },
}


class Module:
    def __init__(self, folder: Path, name: str) -> None:
        path = folder / f"{name}.py"
        self.source = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.source)
        self.doc = ast.get_docstring(self.tree) or ""
        self.defined = {
            node.name: node
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }

    def text(self, node: ast.AST) -> str:
        """A node's source on one line; unlike ast.unparse, the same in every version of Python."""
        return re.sub(r"\s+", " ", ast.get_source_segment(self.source, node) or "").strip()


def signature(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> str:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    parts: list[str] = []
    for place, (arg, default) in enumerate(zip(positional, defaults)):
        if method and place == 0:
            continue
        parts.append(parameter(module, arg, default))
        if args.posonlyargs and place == len(args.posonlyargs) - 1:
            parts.append("/")
    if args.vararg is not None:
        parts.append("*" + parameter(module, args.vararg, None))
    elif args.kwonlyargs:
        parts.append("*")
    parts += [parameter(module, arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
    if args.kwarg is not None:
        parts.append("**" + parameter(module, args.kwarg, None))
    returned = "" if node.returns is None else f" -> {module.text(node.returns)}"
    keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    line = f"{keyword} {node.name}({', '.join(parts)}){returned}"
    if len(line) <= 100:
        return line
    return f"{keyword} {node.name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def parameter(module: Module, arg: ast.arg, default: ast.expr | None) -> str:
    text = arg.arg if arg.annotation is None else f"{arg.arg}: {module.text(arg.annotation)}"
    if default is None:
        return text
    return f"{text}{'=' if arg.annotation is None else ' = '}{module.text(default)}"


def described(doc: str | None) -> str:
    """A docstring's paragraphs, with what Markdown would read as markup escaped outside code."""
    parts = re.split(r"(`+[^`]*`+)", doc or "")
    return "".join(part if place % 2 else re.sub(r"[<*_\[\]]", r"\\\g<0>", part) for place, part in enumerate(parts))


def decorated(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in getattr(node, "decorator_list", []))


def function_parts(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, level: str, prefix: str) -> list[str]:
    method = prefix != ""
    parts = [f"{level} {prefix}{node.name}"]
    if decorated(node, "property"):
        kind = "" if node.returns is None else f": {module.text(node.returns)}"
        parts.append(f"```text\n{node.name}{kind}\n```")
    else:
        parts.append(f"```text\n{signature(module, node, method)}\n```")
    doc = described(ast.get_docstring(node))
    return parts if doc == "" else [*parts, doc]


def class_parts(module: Module, node: ast.ClassDef, level: str) -> list[str]:
    parts = [f"{level} {node.name}"]
    made = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    bases = [module.text(base) for base in node.bases]
    if made is not None and "TypedDict" not in bases:
        line = signature(module, made, True)
        line = re.sub(r"^def __init__", node.name, line).removesuffix(" -> None")
        parts.append(f"```text\n{line}\n```")
    doc = described(ast.get_docstring(node))
    if doc:
        parts.append(doc)
    public = [base for base in bases if re.match(r"[A-Z]", base) and base not in {"Submitting"}]
    if public:
        parts.append("Extends " + ", ".join(f"`{base}`" for base in public) + ".")
    fields = []
    for place, one in enumerate(node.body):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and not one.target.id.startswith("_"):
            following = node.body[place + 1] if place + 1 < len(node.body) else None
            said = following.value if isinstance(following, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
            text = described(re.sub(r"\s+", " ", text).strip()).replace("|", "\\|")
            kind = module.text(one.annotation).replace("|", "\\|")
            fields.append(f"| `{one.target.id}` | `{kind}` | {text} |")
    if fields:
        parts.append("\n".join(["| Attribute | Type | Description |", "| --- | --- | --- |", *fields]))
    for one in node.body:
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if one.name.startswith("_") or decorated(one, "overload") or decorated_setter(one):
            continue
        parts += function_parts(module, one, f"{level}#", f"{node.name}.")
    return parts


def decorated_setter(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "setter" for one in node.decorator_list)


def exported(init: Module) -> list[tuple[str, str]]:
    """The names of `__all__` with the modules that define them, in the order of the import statements."""
    listed: list[str] = []
    homes: dict[str, str] = {}
    for node in init.tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            homes |= {alias.name: node.module for alias in node.names}
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            listed = ast.literal_eval(node.value)
    return [(name, homes[name]) for name in homes if name in listed]


def page(folder: Path, settings: dict) -> str:
    init = Module(folder, "__init__")
    parts = [
        f"# {settings['title']}",
        "Generated from the docstrings by `npm run docs:reference`; do not edit.",
        described(init.doc) + " " + settings["about"],
    ]
    modules: dict[str, Module] = {}
    names = exported(init)
    for home, more in settings["more"].items():
        if (folder / f"{home}.py").exists():
            names += [(name, home) for name in more]
    first = settings["first"]
    names.sort(key=lambda one: (first.index(one[0]) if one[0] in first else len(first), one[0].lower()))
    for name, home in names:
        module = modules.setdefault(home, Module(folder, home))
        node = module.defined[name]
        parts += class_parts(module, node, "##") if isinstance(node, ast.ClassDef) else function_parts(
            module, node, "##", ""
        )
    for name in settings["modules"]:
        module = Module(folder, name)
        parts += [f"## {settings['package']}.{name}", described(module.doc)]
        for own, node in module.defined.items():
            if own.startswith("_"):
                continue
            parts += class_parts(module, node, "###") if isinstance(node, ast.ClassDef) else function_parts(
                module, node, "###", ""
            )
    return "\n\n".join(part.rstrip() for part in parts if part.strip()) + "\n"


def main() -> None:
    clients = Path(sys.argv[1])
    sources = {package.name: package for package in clients.glob("*/src/*") if (package / "__init__.py").exists()}
    pages = {path: page(sources[settings["package"]], settings) for path, settings in PAGES.items()}
    json.dump(pages, sys.stdout, ensure_ascii=False)


main()
