"""Runs the unittest files of a folder and writes a line of JSON about each test: name, outcome, detail."""

from __future__ import annotations

import json
import sys
import unittest
from typing import Any


class Lines(unittest.TestResult):
    """Says what became of each test as it ends; a failed subtest fails its test."""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._outcome, self._details = "passed", []

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        write(test, self._outcome, "\n".join(self._details))

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._outcome = "failed"
        self._details.append(self._exc_info_to_string(err, test))

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        if isinstance(test, unittest.TestCase):
            self.addFailure(test, err)
        else:  # a fixture of a class or module, without a test to start or stop
            write(test, "failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self.addFailure(test, err)
            self._details.append(str(subtest))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._outcome = "skipped"
        self._details.append(reason)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._outcome = "failed"


def write(test: unittest.TestCase, outcome: str, detail: str) -> None:
    name = test.id().split(".")[-1].removeprefix("test_").replace("_", " ")
    print(json.dumps({"name": name, "outcome": outcome, "detail": detail}), flush=True)


def main(folder: str) -> None:
    suite = unittest.defaultTestLoader.discover(folder, "test_*.py", folder)
    suite.run(Lines())


if __name__ == "__main__":  # not again in processes that tests start
    main(sys.argv[1])
