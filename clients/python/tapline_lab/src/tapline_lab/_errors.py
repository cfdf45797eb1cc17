from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class TaplineError(Exception):
    """A request that a service refused, an invalid response, or a job that did not complete.

    `status` is the HTTP status, if there is one; `job` is the job that failed, was cancelled or interrupted.
    """

    def __init__(
        self, message: str, *, status: int | None = None, job: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.job = job
