from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ._errors import TaplineError


class Waiting:
    """What both kinds of `wait` ask between two looks at a job: how long to be patient, and whether it is over."""

    def __init__(self, name: str, timeout: float) -> None:
        self._name = name
        self._timeout = timeout
        self._started = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._started

    def patience(self, longest: float) -> float:
        """How long one look may take: a second even when the deadline is near, so that 0 asks once."""
        return min(longest, max(self._timeout - self.seconds(), 1))

    def is_over(self, job: Mapping[str, Any]) -> bool:
        """Whether it completed. Raises TaplineError for one that ended otherwise."""
        status = job["status"]
        if status not in ("completed", "queued", "running"):
            raise TaplineError(job.get("error") or f"Job {self._name} was {status}.", job=job)
        return bool(status == "completed")

    def pause(self, job: Mapping[str, Any], interval: float) -> float:
        """How long to sleep before the next look. Raises TimeoutError when there is none."""
        left = self._timeout - self.seconds()
        if left <= 0:
            raise TimeoutError(f"Job {self._name} is still {job['status']} after {self._timeout:g} s.")
        return min(interval, left)
