from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from ._errors import TaplineError
from .types import Progress

if TYPE_CHECKING:
    import numpy
    import pandas
    from numpy.typing import NDArray

    from .arrays import Autoencoder, Probe, RowScores
    from .figures import Figure

R = TypeVar("R")


class Job(dict[str, Any], Generic[R]):
    """A job, as a dictionary sent by the service. Methods read its artifacts (with NumPy) or show its result."""

    def __init__(self, fields: Mapping[str, Any], read_artifact: Callable[[str, str], bytes]) -> None:
        super().__init__(fields)
        self._read_artifact = read_artifact
        self._downloaded: dict[str, bytes] = {}

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, key: Literal["result"]) -> R: ...
        @overload
        def __getitem__(self, key: Literal["config"]) -> dict[str, Any]: ...
        @overload
        def __getitem__(self, key: Literal["progress"]) -> Progress: ...
        @overload
        def __getitem__(self, key: Literal["id", "status", "operation", "model", "error"]) -> str: ...
        @overload
        def __getitem__(self, key: str) -> Any: ...
        def __getitem__(self, key: str) -> Any: ...

    def _repr_html_(self) -> str:
        """Shows the job in a notebook, with a table of its results."""
        from ._html import job_as_html

        return job_as_html(self)

    def layers(self) -> dict[int, NDArray[numpy.float32]]:
        """Returns block outputs of an inspect job by layer: float32 [1, tokens, hidden]."""
        from . import arrays

        return arrays.layers(self._artifacts("inspect", "activations.npz"))

    def probes(self) -> dict[int, Probe]:
        """Returns the probes of a probe job by layer."""
        from . import arrays

        return arrays.probes(self._artifacts("probe", "probe-layer-"))

    def row_scores(self) -> dict[int, RowScores]:
        """Returns the score of every token in a probe job with rows "all", by layer."""
        from . import arrays

        return arrays.row_scores(self._artifacts("probe", "probe-rows-"))

    def autoencoders(self) -> dict[int, Autoencoder]:
        """Returns the autoencoders of an SAE job by layer."""
        from . import arrays

        return arrays.autoencoders(self._artifacts("sae", "sae-"))

    def frame(self) -> pandas.DataFrame:
        """Returns the result as a pandas DataFrame: trials of compare, scores of probe, features of sae, tokens of inspect."""
        from . import frames

        return frames.frame(self["operation"], self._result())

    def figure(self) -> Figure:
        """Returns the result's figure as SVG, which Jupyter displays."""
        from . import figures

        return figures.figure(self["operation"], self._result())

    def _result(self) -> Any:
        if self["status"] != "completed":
            raise TaplineError(f"Job {self['id']} is {self['status']}; call wait() to get its result.")
        return self["result"]

    def _artifacts(self, operation: str, prefix: str) -> dict[str, bytes]:
        if self["operation"] != operation:
            raise TaplineError(f"Job {self['id']} is of operation {self['operation']}, not {operation}.")
        if self["status"] != "completed":
            raise TaplineError(f"Job {self['id']} is {self['status']}; artifacts are available once it has completed.")
        names = [name for name in self.get("result", {})["artifacts"] if name.startswith(prefix)]
        for name in names:
            if name not in self._downloaded:
                self._downloaded[name] = self._read_artifact(self["id"], name)
        return {name: self._downloaded[name] for name in names}
