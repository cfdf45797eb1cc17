from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from ._errors import TaplineError
from ._http import Transport
from .types import Capabilities, CaptureResult

if TYPE_CHECKING:
    from .arrays import Capture

# Many texts are many forward passes, and each waits for its turn.
_MAKING = 600.0


class ServingModel:
    """The model that an inference server on this machine (`tapline serve`) holds in memory.

    `timeout` is the longest silence within one request, in seconds; a capture may wait a minute for its turn.
    `api_key` is the server's key, if it has one; without it the environment's TAPLINE_API_KEY is sent.
    """

    def __init__(self, port: int = 8971, timeout: float = 75, *, api_key: str | None = None) -> None:
        key = os.environ.get("TAPLINE_API_KEY") if api_key is None else api_key
        self._http = Transport(f"http://127.0.0.1:{port}", timeout, key)

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
        return self._http.json("/lab/vectors", body, timeout=max(self._http.timeout, _MAKING))

    def make_probe(
        self,
        name: str,
        positive: Sequence[str],
        negative: Sequence[str],
        layer: int,
        *,
        position: str = "last",
    ) -> dict[str, Any]:
        """Trains a linear probe on two lists of texts on the resident model and keeps it under a name.

        Texts like the positive ones score near 1. Every fifth text is held out; `separation` is the AUROC there,
        `shuffled_separation` that of shuffled labels. Requests name it in `watch`, `when` and `stop_when`.
        """
        body = {
            "name": name,
            "positive": list(positive),
            "negative": list(negative),
            "layer": layer,
            "position": position,
        }
        return self._http.json("/lab/probes", body, timeout=max(self._http.timeout, _MAKING))

    def put_vector(self, name: str, vector: Any, layer: int | None = None) -> dict[str, Any]:
        """Stores your own direction under a name: a NumPy array [hidden] with its `layer`, or arrays by layer.

        A vector of that name is replaced. Requests name it as one that `make_vector` made; it has no `separation`.
        """
        from .arrays import vector_file

        return self._http.put(f"/lab/vectors/{quote(name, safe='')}", vector_file(vector, layer))

    def put_probe(
        self, name: str, weight: Any, layer: int, *, bias: float = 0.0, mean: Any = None, std: Any = None
    ) -> dict[str, Any]:
        """Stores your own linear probe under a name: it scores sigmoid(weight @ ((h - mean) / std) + bias).

        `mean` is 0 and `std` 1 unless given. A probe of that name is replaced.
        """
        from .arrays import probe_file

        content = probe_file(weight, bias, mean, std)
        return self._http.put(f"/lab/probes/{quote(name, safe='')}?layer={int(layer)}", content)

    def chat(
        self, messages: str | Sequence[Mapping[str, Any]], *, tapline: Mapping[str, Any] | None = None, **request: Any
    ) -> list[dict[str, Any]]:
        """Answers to a conversation, or to one question: usually one, with `pair` or `n` several.

        `tapline` steers and watches (see "Steer and watch a running model" in the documentation); `request` holds
        further fields, such as `max_tokens` and `temperature`. Each choice has its `message`, and in `tapline` what
        was watched and what each edit did; with `pair` the one without the edits says in `pair_of` beside which it is.
        """
        asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else [dict(m) for m in messages]
        return self._choices("/v1/chat/completions", {"messages": asked, **request}, tapline)

    def complete(
        self, prompt: str, *, tapline: Mapping[str, Any] | None = None, **request: Any
    ) -> list[dict[str, Any]]:
        """Texts that a raw prompt goes on with, no chat template; otherwise as `chat`. Each choice has its `text`."""
        return self._choices("/v1/completions", {"prompt": prompt, **request}, tapline)

    def _choices(self, path: str, body: dict[str, Any], tapline: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        if body.get("stream"):
            raise ValueError("stream: answers come whole here; stream with the OpenAI client at /v1 of this server.")
        if tapline is not None:
            body["tapline"] = dict(tapline)
        return cast("list[dict[str, Any]]", self._http.json(path, body)["choices"])

    def capture(self, identifier: str) -> Capture:
        """Rows that a request kept (`watch` with `states`), as NumPy arrays; its answer says the id."""
        from .arrays import capture

        return capture(self._http.content(f"/lab/captures/{quote(identifier, safe='')}?format=npz"))

    def remove_vector(self, name: str) -> None:
        """Forgets a vector."""
        self._http.json(f"/lab/vectors/{quote(name, safe='')}", method="DELETE")

    def remove_probe(self, name: str) -> None:
        """Forgets a probe."""
        self._http.json(f"/lab/probes/{quote(name, safe='')}", method="DELETE")

    def vectors(self) -> list[dict[str, Any]]:
        """The vectors that requests can name."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/vectors")["vectors"])

    def probes(self) -> list[dict[str, Any]]:
        """The probes that requests can name."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/probes")["probes"])
