"""Compares TypedDicts with the JSON schemas that the services validate with."""

from __future__ import annotations

import json
import os
import typing
from types import ModuleType
from typing import Any


class TypesFollowSchemas:
    """Mixed into a TestCase: the TypedDicts of `types` against the schemas in the file TAPLINE_TEST_SCHEMAS."""

    types: ModuleType

    def test_types_are_the_schemas(self: Any) -> None:
        with open(os.environ["TAPLINE_TEST_SCHEMAS"], encoding="utf8") as file:
            schemas = json.load(file)
        self.assertGreater(len(schemas), 0)
        for name, schema in schemas.items():
            with self.subTest(name):
                self.assertEqual(differences(getattr(self.types, name), schema, name), [])


def differences(hint: Any, schema: dict[str, Any], place: str) -> list[str]:
    """Where a type and a schema say different things; empty where they agree."""
    if typing.is_typeddict(hint):
        return _of_objects(hint, schema, place)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    options = schema.get("anyOf")
    if type(None) in arguments:
        if options is None or {"type": "null"} not in [{"type": o.get("type")} for o in options]:
            return [f"{place}: may be None, which the schema does not know"]
        inner = [option for option in options if option.get("type") != "null"]
        rest = [argument for argument in arguments if argument is not type(None)]
        return differences(rest[0], inner[0], place)
    if origin is list:
        if schema.get("type") != "array":
            return [f"{place}: is no array in the schema"]
        return differences(arguments[0], schema["items"], f"{place}[]")
    if origin is dict:
        return [] if schema.get("type") == "object" else [f"{place}: is no object in the schema"]
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
