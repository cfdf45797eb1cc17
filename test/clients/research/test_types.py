"""The client's types say what the contracts say."""

from __future__ import annotations

import json
import os
import unittest

import agent_research.types
from typed import differences


class TestTypes(unittest.TestCase):
    def test_types_are_the_schemas(self) -> None:
        with open(os.environ["TAPLINE_TEST_SCHEMAS"], encoding="utf8") as file:
            schemas = json.load(file)
        self.assertGreater(len(schemas), 0)
        for name, schema in schemas.items():
            with self.subTest(name):
                self.assertEqual(differences(getattr(agent_research.types, name), schema, name), [])
