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

# Each text needs a forward pass, and each pass is queued.
_MAKING = 600.0


class ServingModel:
    """The model loaded in an inference server on this machine (`tapline serve`).

    `timeout` is the longest silence within one request, in seconds; a capture may be queued for a minute.
    `api_key` is the server's key, if it has one; default: the environment's TAPLINE_API_KEY.
    """

    def __init__(self, port: int = 8971, timeout: float = 75, *, api_key: str | None = None) -> None:
        key = os.environ.get("TAPLINE_API_KEY") if api_key is None else api_key
        self._http = Transport(f"http://127.0.0.1:{port}", timeout, key)

    def __repr__(self) -> str:
        return f"ServingModel({self._http.origin!r})"

    def capabilities(self) -> Capabilities:
        """Returns the resident model, whether it supports captures, and their limits."""
        return cast(Capabilities, self._http.json("/lab/capabilities"))

    def inspect(
        self, prompt: str, layers: Sequence[int] | None = None, max_input_tokens: int = 128
    ) -> CaptureResult:
        """Measures the resident model on raw text: norms of the chosen block outputs, next-token candidates.

        It looks up the model's exact name first, so that no other model is measured by mistake. `layers` are
        up to 4 distinct zero-based blocks; default: the first. Aborting the wait does not abort the capture.
        """
        model = self.capabilities().get("model")
        if model is None:
            raise TaplineError("The server has no model loaded at the moment.")
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
        """Creates a direction from two lists of texts on the resident model and saves it under a name.

        Use it in requests: `extra_body={"tapline": {"interventions": [{"kind": "steer", "vector": name, …}]}}`
        with the official OpenAI client. The result has, for each layer, its norm and how well it separates held-out
        texts (`separation`, an AUROC; `shuffled_separation` for shuffled labels). `position` is `last` or `mean`, the
        activation used for each text; `method` is `difference` or `pca`.
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
        """Trains a linear probe on two lists of texts on the resident model and saves it under a name.

        Texts like the positive ones score near 1. Every fifth text is held out; `separation` is the AUROC on those,
        `shuffled_separation` with shuffled labels. Use it in requests' `watch`, `when` and `stop_when`.
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
        """Saves your own direction under a name: a NumPy array [hidden] with its `layer`, or arrays by layer.

        An existing vector is replaced. It is used like those of `make_vector`, but has no `separation`.
        """
        from .arrays import vector_file

        return self._http.put(f"/lab/vectors/{quote(name, safe='')}", vector_file(vector, layer))

    def put_probe(
        self, name: str, weight: Any, layer: int, *, bias: float = 0.0, mean: Any = None, std: Any = None
    ) -> dict[str, Any]:
        """Saves your own linear probe under a name, with the score sigmoid(weight @ ((h - mean) / std) + bias).

        Defaults: `mean` 0, `std` 1. An existing probe is replaced.
        """
        from .arrays import probe_file

        content = probe_file(weight, bias, mean, std)
        return self._http.put(f"/lab/probes/{quote(name, safe='')}?layer={int(layer)}", content)

    def chat(
        self, messages: str | Sequence[Mapping[str, Any]], *, tapline: Mapping[str, Any] | None = None, **request: Any
    ) -> list[dict[str, Any]]:
        """Returns the answers to a conversation or question: one, or several with `pair` or `n`.

        `tapline` sets interventions and readings (see "Steer and watch a running model" in the documentation); `request`
        holds further fields, such as `max_tokens` and `temperature`. Each choice has a `message`, and readings and the
        effect of each edit in `tapline`; with `pair`, `pair_of` of the unedited answer is the index of the edited one.
        """
        asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else [dict(m) for m in messages]
        return self._choices("/v1/chat/completions", {"messages": asked, **request}, tapline)

    def complete(
        self, prompt: str, *, tapline: Mapping[str, Any] | None = None, **request: Any
    ) -> list[dict[str, Any]]:
        """Returns continuations of a raw prompt, without chat template; otherwise like `chat`. Each choice has a `text`."""
        return self._choices("/v1/completions", {"prompt": prompt, **request}, tapline)

    def _choices(self, path: str, body: dict[str, Any], tapline: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        if body.get("stream"):
            raise ValueError("stream is not supported here; use the OpenAI client with this server's /v1 to stream.")
        if tapline is not None:
            body["tapline"] = dict(tapline)
        return cast("list[dict[str, Any]]", self._http.json(path, body)["choices"])

    def capture(self, identifier: str) -> Capture:
        """Returns activations that a request captured (`watch` with `states`) as NumPy arrays; its answer contains the id."""
        from .arrays import capture

        return capture(self._http.content(f"/lab/captures/{quote(identifier, safe='')}?format=npz"))

    def remove_capture(self, identifier: str) -> None:
        """Deletes captured activations before newer ones replace them."""
        self._http.json(f"/lab/captures/{quote(identifier, safe='')}", method="DELETE")

    def put_profile(self, name: str, tapline: Mapping[str, Any], *, description: str = "") -> dict[str, Any]:
        """Saves edits and readings as a profile: requests whose `model` is MODEL@NAME run with them.

        `tapline` has `interventions`, `watch` and `stop_when` as in `chat`. An existing profile is replaced. The result
        has the hashes of the vectors and probes it names; if one changes, the profile is refused until it is saved again.
        """
        body = {"tapline": dict(tapline), "description": description}
        return self._http.json(f"/lab/profiles/{quote(name, safe='')}", body, method="PUT")

    def profiles(self) -> list[dict[str, Any]]:
        """Returns the saved profiles."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/profiles")["profiles"])

    def remove_profile(self, name: str) -> None:
        """Deletes a saved profile."""
        self._http.json(f"/lab/profiles/{quote(name, safe='')}", method="DELETE")

    def remove_vector(self, name: str) -> None:
        """Deletes a saved vector."""
        self._http.json(f"/lab/vectors/{quote(name, safe='')}", method="DELETE")

    def remove_probe(self, name: str) -> None:
        """Deletes a saved probe."""
        self._http.json(f"/lab/probes/{quote(name, safe='')}", method="DELETE")

    def vectors(self) -> list[dict[str, Any]]:
        """Returns the saved vectors."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/vectors")["vectors"])

    def probes(self) -> list[dict[str, Any]]:
        """Returns the saved probes."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/probes")["probes"])
