"""Helpers of the tests in this folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def wait_for(what: str, condition: Callable[[], Any]) -> Any:
    """Returns the condition's value once it is true. Fails after two minutes."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")
