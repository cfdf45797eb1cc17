"""The methods of the Lab, one per operation, have the fields and the result of the contracts."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import typing
import unittest

from tapline_lab import AsyncLab, Lab

# Fields that a method has under another name, because Python has a keyword of that name, or with more in it.
OTHERWISE = {"sae": {"from": "extraction"}, "features": {"prompt": "texts"}}
# Arguments of submit() itself.
GIVEN = {"operation", "model"}


class TestSettings(unittest.TestCase):
    submissions: dict[str, set[str]]
    results: dict[str, str]

    @classmethod
    def setUpClass(cls) -> None:
        with open(os.environ["TAPLINE_TEST_SCHEMAS"], encoding="utf8") as file:
            schemas = json.load(file)
        named = {
            schema["properties"]["operation"]["const"]: (name, set(schema["properties"]) - GIVEN)
            for name, schema in schemas.items()
            if "const" in schema["properties"].get("operation", {})
        }
        cls.submissions = {operation: fields for operation, (_, fields) in named.items()}
        cls.results = {operation: name.replace("Submission", "Result") for operation, (name, _) in named.items()}

    def test_methods_name_every_field_and_no_other(self) -> None:
        self.assertGreater(len(self.submissions), 8)
        shared = _words(inspect.getdoc(Lab.submit)) & set.union(*self.submissions.values())
        self.assertEqual(shared, {"layers", "max_input_tokens", "max_tokens", "seed", "revision"})
        for operation, fields in self.submissions.items():
            with self.subTest(operation):
                method = getattr(Lab, operation)
                other = OTHERWISE.get(operation, {})
                arguments = set(inspect.signature(method).parameters) - {"self", "model", "settings"}
                self.assertEqual(arguments - fields, set(other.values()) - fields)
                named = shared | arguments | _words(inspect.getdoc(method))
                self.assertEqual({other.get(field, field) for field in fields} - named, set())

    def test_jobs_have_the_result_of_their_operation(self) -> None:
        for lab in (Lab, AsyncLab):
            given = {name: inspect.signature(getattr(lab, name)).return_annotation for name in self.results}
            self.assertEqual(given, {name: f"Job[{result}]" for name, result in self.results.items()})

    @unittest.skipUnless(sys.version_info >= (3, 11), "older Pythons do not keep overloads")
    def test_submit_knows_every_operation(self) -> None:
        for lab in (Lab, AsyncLab):
            signatures = [inspect.signature(one) for one in typing.get_overloads(lab.submit)]
            given = {one.parameters["operation"].annotation: one.return_annotation for one in signatures}
            expected = {f"Literal[{name!r}]": f"Job[{result}]" for name, result in self.results.items()}
            self.assertEqual(given, {**expected, "str": "Job[Any]"})


def _words(text: str | None) -> set[str]:
    return set(re.findall(r"\w+", text or ""))
