"""Clients for tapline's local services: `Lab` and `AsyncLab` for experiments, `ServingModel` for served models."""

from ._async import AsyncLab
from ._errors import TaplineError
from ._job import Job
from ._lab import Lab
from ._serving import ServingModel

__all__ = ["AsyncLab", "Job", "Lab", "ServingModel", "TaplineError"]
__version__ = "0.2.0"
