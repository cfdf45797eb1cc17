"""The client's types say what the contracts say."""

from __future__ import annotations

import unittest

import tapline.types
from typed import TypesFollowSchemas


class TestTypes(TypesFollowSchemas, unittest.TestCase):
    types = tapline.types
