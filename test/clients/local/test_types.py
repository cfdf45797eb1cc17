"""The client's types say what the contracts say."""

from __future__ import annotations

import unittest
from pathlib import Path

import tapline_lab.types
from typed import TypesFollowSchemas


class TestTypes(TypesFollowSchemas, unittest.TestCase):
    types = tapline_lab.types
    published = Path(__file__).parents[1] / "fixtures/tapline.txt"
