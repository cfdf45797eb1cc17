"""tapline from Python: `load` or `connect` a model and run texts through it, `Lab` for isolated experiments."""

from typing import Any as _Any

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
__version__ = "0.3.0"


def __getattr__(name: str) -> _Any:
    """`tl.transformer_lens(model)` imports TransformerLens and PyTorch only when it is used, and `tl.Rows` NumPy."""
    if name == "Rows":
        from ._rows import Rows

        return Rows
    if name == "transformer_lens":
        import importlib

        return importlib.import_module(".transformer_lens", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
