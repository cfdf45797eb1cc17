"""Compares TypedDicts with the JSON schemas that the services validate with."""

from __future__ import annotations

import json
import os
import re
import types
import typing
from pathlib import Path
from types import ModuleType
from typing import Any


class TypesFollowSchemas:
    """Mixed into a TestCase: the TypedDicts of `types` against the schemas in the file TAPLINE_TEST_SCHEMAS, and against
    the names and fields that programs imported when these types were written by hand (`published`)."""

    types: ModuleType
    published: Path

    def test_published_types_have_not_changed(self: Any) -> None:
        with self.published.open(encoding="utf8") as file:
            published = dict(line.rstrip("\n").split(": ", 1) for line in file)
        self.assertGreater(len(published), 0)
        now = described(self.types)
        changed = {name: now.get(name) for name, then in published.items() if not _kept(then, now.get(name, ""))}
        self.assertEqual(changed, {})

    def test_types_are_the_schemas(self: Any) -> None:
        with open(os.environ["TAPLINE_TEST_SCHEMAS"], encoding="utf8") as file:
            schemas = json.load(file)
        self.assertGreater(len(schemas), 0)
        for name, schema in schemas.items():
            with self.subTest(name):
                self.assertEqual(differences(getattr(self.types, name), schema, name), [])


def described(module: ModuleType) -> dict[str, str]:
    """What each alias of a module and each field of its TypedDicts is; a field that may be absent begins with "?"."""
    found: dict[str, str] = {}
    for name, value in vars(module).items():
        if typing.is_typeddict(value) and not name.startswith("_"):
            for field, hint in typing.get_type_hints(value).items():
                found[f"{name}.{field}"] = ("?" if field in value.__optional_keys__ else "") + _text(hint)
        elif typing.get_origin(value) is typing.Literal:
            found[name] = _text(value)
    return found


def _kept(then: str, now: str) -> bool:
    """Whether a type is what it was; a list of words may have become longer."""
    literals = re.compile(r"Literal\[[^]]*]")
    words = [set(re.findall(r"'[^']*'|\d+", " ".join(literals.findall(text)))) for text in (then, now)]
    return literals.sub("", then) == literals.sub("", now) and words[0] <= words[1]


def _text(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return f"Literal{list(arguments)}"
    if origin in (list, dict):
        return f"{origin.__name__}[{', '.join(map(_text, arguments))}]"
    if arguments:
        return " | ".join(map(_text, arguments))
    return "None" if hint is type(None) else str(hint.__name__)


def differences(hint: Any, schema: dict[str, Any], place: str) -> list[str]:
    """Where a type and a schema say different things; empty where they agree."""
    if typing.is_typeddict(hint):
        return _of_objects(hint, schema, place)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    options = schema.get("anyOf")
    if origin in (typing.Union, types.UnionType):
        if options is None or len(options) != len(arguments):
            return [f"{place}: {hint} in Python, which the schema does not know"]
        # What may be null is so last in Python.
        ordered = sorted(options, key=lambda option: option.get("type") == "null")
        return [fault for pair in zip(arguments, ordered) for fault in differences(*pair, place)]
    if origin is list:
        if schema.get("type") != "array":
            return [f"{place}: not an array in the schema"]
        items = schema["items"] if isinstance(schema["items"], list) else [schema["items"]]
        return [fault for item in items for fault in differences(arguments[0], item, f"{place}[]")]
    if origin is dict:
        return [] if schema.get("type") == "object" else [f"{place}: not an object in the schema"]
    if origin is typing.Literal:
        allowed = [schema["const"]] if "const" in schema else schema.get("enum")
        same = allowed is not None and list(allowed) == list(arguments)
        return [] if same else [f"{place}: {arguments} in Python, {allowed} in the schema"]
    names = {str: ["string"], float: ["number", "integer"], int: ["integer", "number"], bool: ["boolean"]}
    names[type(None)] = ["null"]
    kind = schema.get("type") or ("string" if "enum" in schema else None)
    kind = kind or ("number" if isinstance(schema.get("const"), int) else None)
    return [] if kind in names.get(hint, []) else [f"{place}: {hint} in Python, {kind} in the schema"]


def _of_objects(hint: Any, schema: dict[str, Any], place: str) -> list[str]:
    hints = typing.get_type_hints(hint)
    properties, required = schema["properties"], set(schema.get("required", []))
    found = [f"{place}.{name}: is missing in Python" for name in properties.keys() - hints.keys()]
    found += [f"{place}.{name}: is not in the schema" for name in hints.keys() - properties.keys()]
    found += [f"{place}.{name}: required in one only" for name in required ^ set(hint.__required_keys__)]
    for name in hints.keys() & properties.keys():
        found += differences(hints[name], properties[name], f"{place}.{name}")
    return found
