from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ._errors import TaplineError


class Waiting:
    """Deadline and status checks shared by both kinds of `wait`."""

    def __init__(self, name: str, timeout: float) -> None:
        self._name = name
        self._timeout = timeout
        self._started = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._started

    def patience(self, longest: float) -> float:
        """Timeout of one poll: at least a second, so that a timeout of 0 polls once."""
        return min(longest, max(self._timeout - self.seconds(), 1))

    def is_over(self, job: Mapping[str, Any]) -> bool:
        """Whether the job completed. Raises TaplineError if it ended without completing."""
        status = job["status"]
        if status not in ("completed", "queued", "running"):
            raise TaplineError(job.get("error") or f"Job {self._name} was {status}.", job=job)
        return bool(status == "completed")

    def pause(self, job: Mapping[str, Any], interval: float) -> float:
        """Seconds to sleep before the next poll. Raises TimeoutError after the deadline."""
        left = self._timeout - self.seconds()
        if left <= 0:
            raise TimeoutError(f"Job {self._name} is still {job['status']} after {self._timeout:g} s.")
        return min(interval, left)
