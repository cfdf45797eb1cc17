"""tapline from Python: `load` or `connect` a model and run texts through it, `Lab` for isolated experiments."""

from ._async import AsyncLab
from ._errors import TaplineError
from ._job import Job
from ._lab import Lab
from ._model import AsyncModel, Model, ablate, add, clamp, connect, load, project_out, scale, set_to
from ._serving import ServingModel

__all__ = [
    "AsyncLab",
    "AsyncModel",
    "Job",
    "Lab",
    "Model",
    "ServingModel",
    "TaplineError",
    "ablate",
    "add",
    "clamp",
    "connect",
    "load",
    "project_out",
    "scale",
    "set_to",
]
__version__ = "0.2.0"
