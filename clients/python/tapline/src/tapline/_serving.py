from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

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

    def make_vector(
        self,
        name: str,
        positive: Sequence[str],
        negative: Sequence[str],
        layers: Sequence[int],
        *,
        position: str = "last",
        method: str = "difference",
    ) -> dict[str, Any]:
        """Makes a direction from two lists of texts on the resident model and keeps it under a name.

        Requests then name it: `extra_body={"tapline": {"interventions": [{"kind": "steer", "vector": name, …}]}}`
        with the official OpenAI client. The answer says for each layer how long it is and how well it separates
        texts that it was not made from (`separation`, an AUROC; `shuffled_separation` for shuffled labels).
        `position` is the state of each text, `last` or `mean`; `method` is `difference` or `pca`.
        """
        body = {
            "name": name,
            "positive": list(positive),
            "negative": list(negative),
            "layers": list(layers),
            "position": position,
            "method": method,
        }
        return self._http.json("/lab/vectors", body)

    def vectors(self) -> list[dict[str, Any]]:
        """The vectors that requests can name."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/vectors")["vectors"])

    def probes(self) -> list[dict[str, Any]]:
        """The probes that requests can name."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/probes")["probes"])
