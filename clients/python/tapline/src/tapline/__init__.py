"""Clients of tapline's local services: `Lab` for experiments, `ServingModel` for the model that serves."""

from ._errors import TaplineError
from ._job import Job
from ._lab import Lab
from ._serving import ServingModel

__all__ = ["Job", "Lab", "ServingModel", "TaplineError"]
__version__ = "0.2.0"
