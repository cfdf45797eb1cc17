from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ._errors import TaplineError
from ._http import Transport
from .types import Capabilities, CaptureResult


class ServingModel:
    """The model that an inference server on this machine (`tapline serve`) holds in memory.

    `timeout` is the longest silence within one request, in seconds; a capture may wait a minute for its turn.
    """

    def __init__(self, port: int = 8971, timeout: float = 75) -> None:
        self._http = Transport(f"http://127.0.0.1:{port}", timeout)

    def __repr__(self) -> str:
        return f"ServingModel({self._http.origin!r})"

    def capabilities(self) -> Capabilities:
        """Which model is resident, whether it can be captured, and the limits of a capture."""
        return cast(Capabilities, self._http.json("/lab/capabilities"))

    def inspect(
        self, prompt: str, layers: Sequence[int] | None = None, max_input_tokens: int = 128
    ) -> CaptureResult:
        """Measures the resident model on raw text: norms of the chosen block outputs, next-token candidates.

        It looks up the model's exact name first, so that nothing else is measured by mistake. `layers` are up
        to 4 distinct zero-based blocks, the first one unless given. Ending the wait does not end the capture.
        """
        model = self.capabilities().get("model")
        if model is None:
            raise TaplineError("The server holds no model at the moment.")
        body = {"model": model, "prompt": prompt, "max_input_tokens": max_input_tokens}
        if layers is not None:
            body["layers"] = list(layers)
        return cast(CaptureResult, self._http.json("/lab/activations", body))
