"""A served model as an object: forward calls, edits, text. `load` starts a server, `connect` joins one."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from ._command import command
from ._errors import TaplineError
from ._serving import ServingModel
from ._weights import Weights

if TYPE_CHECKING:
    from ._forward import Run
    from ._generated import Generated
    from .arrays import Probe

# A server's status while it has no model, and seconds between two requests.
_UNAVAILABLE = 503
_RETRY = 0.2

_READY = re.compile(rb"ready at http://[^\s:]+:([0-9]+)")


class Model(ServingModel, Weights):
    """The model of a running server, for notebooks. Close it, or use it as a context manager, to end a server that
    `load` started; it also ends with this process."""

    def __init__(self, port: int = 8971, timeout: float = 600, *, api_key: str | None = None) -> None:
        super().__init__(port, timeout, api_key=api_key)
        self._server: subprocess.Popen[bytes] | None = None
        self._files = True  # until one cannot be opened: a server in a container, for example
        self.info = self.capabilities()
        if not self.info["serving_activations"]:
            raise TaplineError(f"The server at {self._http.origin} gives no access to activations; see its log.")

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {self.n_layers} blocks, hidden size {self.hidden_size})"

    @property
    def name(self) -> str:
        return str(self.info["model"])

    @property
    def n_layers(self) -> int:
        return int(self.info["n_layer"] or 0)

    @property
    def hidden_size(self) -> int:
        return int(self.info["n_embd"] or 0)

    def run(
        self,
        texts: Any,
        capture: str | Sequence[str] = (),
        *,
        edits: Iterable[Mapping[str, Any]] = (),
        logits: str | Sequence[int] | None = None,
        positions: Sequence[int] | None = None,
        stop_at_layer: int | None = None,
        precision: str = "f32",
        add_special_tokens: bool = True,
    ) -> Run:
        """Runs up to 64 texts through the model and returns activations and logits as arrays.

        `texts`: a text, token ids, or a list of them; a 2-D array or tensor of token ids is a batch.
        `capture`: points with their block, such as "block_out.5" or TransformerLens's "blocks.5.hook_out", with
        `*` for all blocks. `positions`: the captured tokens of each sequence, negative ones from the end (default:
        all). `edits`: from `add`, `scale`, `set_to`, `ablate`, `project_out` and `clamp`; captured rows include
        them. `logits`: "none", "last", "all" or positions; by default "last" without captures, else "none".
        `stop_at_layer` computes only the blocks before it. Requires NumPy.

        Raises TaplineError with the service's sentence. Interrupting the call (Ctrl-C) ends the pass.
        """
        from ._forward import Run, request

        body, wanted = request(
            texts, capture, edits, logits, positions, stop_at_layer, precision, add_special_tokens
        )
        return Run(self._forward(body), wanted, positions, self)

    def _forward(self, body: dict[str, Any]) -> Any:
        from ._forward import mapped

        if self._files:
            file = self._http.quick("/lab/forward", {**body, "transfer": "file"})
            content = mapped(file["path"])
            if content is not None:
                return content
            self._files = False
        return bytearray(self._http.content("/lab/forward", body))

    def generate(
        self,
        prompt: str | Sequence[Mapping[str, Any]],
        max_tokens: int = 64,
        *,
        edits: Iterable[Mapping[str, Any]] = (),
        watch: Mapping[str, Any] | None = None,
        states: Sequence[int] = (),
        temperature: float = 0,
        **request: Any,
    ) -> Generated:
        """Continues a text, or answers a chat (a list of messages), with edits and readings of this request alone.

        `edits`: from `add`, `scale`, `ablate`, `set_to`, `project_out` and `clamp`; `watch`: norms, lens, probes, projections
        and features, at any `point` of a block, as in "Steer and watch a running model"; `states`: layers whose activations
        come back as float32 [rows, hidden]. `request`: further fields, such as `seed` and `stop`; for `n` or `pair`, use
        `complete` or `chat`.
        """
        from ._generated import generate

        found = generate(
            self, prompt, edits, watch, states, {"max_tokens": max_tokens, "temperature": temperature, **request}
        )
        return found[0]

    def vector(
        self, name: str, positive: Sequence[str], negative: Sequence[str], layers: Sequence[int], **options: Any
    ) -> dict[int, Any]:
        """Creates a direction from two lists of texts and saves it under a name, like `make_vector`.

        Returns it by layer, float32 [hidden], for edits of `run`; live requests use the name.
        """
        from ._forward import tensors

        self.make_vector(name, positive, negative, layers, **options)
        found = tensors(self._http.content(f"/lab/vectors/{quote(name, safe='')}?format=safetensors"))
        return {int(key.removeprefix("layer_")): values for key, values in found.items() if key.startswith("layer_")}

    def probe(
        self, name: str, positive: Sequence[str], negative: Sequence[str], layer: int, **options: Any
    ) -> Probe:
        """Trains a linear probe on two lists of texts and saves it under a name, like `make_probe`.

        Its `probabilities(run.cache["block_out.5"])` are P(positive) of each row; live requests use the name.
        """
        from ._forward import tensors
        from .arrays import Probe

        self.make_probe(name, positive, negative, layer, **options)
        found = tensors(self._http.content(f"/lab/probes/{quote(name, safe='')}?format=safetensors"))
        return Probe(found["weight"], float(found["bias"].reshape(())), found["mean"], found["std"])

    def features(self, dictionary: str, text: str, layer: int, top: int = 10) -> list[dict[str, Any]]:
        """The strongest features of a saved dictionary at each token of a text.

        `layer`: the block whose output the dictionary reads. Each entry has `index` (of the token), `token_id`, the
        number of `active` features and `features` with their activations.
        """
        watch = {"layers": [int(layer)], "states": True, "positions": "prompt"}
        (choice,) = self.complete(text, max_tokens=1, tapline={"watch": watch})
        identifier = choice["tapline"]["capture"]["id"]
        query = f"dictionary={quote(dictionary, safe='')}&top={int(top)}"
        try:
            found = self._http.json(f"/lab/captures/{quote(identifier, safe='')}/features?{query}")
        finally:
            self.remove_capture(identifier)
        return cast("list[dict[str, Any]]", found["rows"])

    def tokenize(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Token ids of a text."""
        body = {"content": text, "add_special": add_special_tokens, "parse_special": False}
        return [int(token) for token in self._http.json("/tokenize", body)["tokens"]]

    def to_string(self, tokens: Iterable[int]) -> str:
        """The text of token ids."""
        return str(self._http.json("/detokenize", {"tokens": [int(token) for token in tokens]})["content"])

    def close(self) -> None:
        """Ends the server, if `load` started it. Safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            _end(server)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncModel:
    """The same for asyncio: `await model.run(…)`. Cancelling a task that awaits `run` ends the pass on the server; the
    other calls run in threads, and cancelling only ends the waiting."""

    def __init__(self, model: Model) -> None:
        self.model = model

    async def run(
        self,
        texts: Any,
        capture: str | Sequence[str] = (),
        *,
        edits: Iterable[Mapping[str, Any]] = (),
        logits: str | Sequence[int] | None = None,
        positions: Sequence[int] | None = None,
        stop_at_layer: int | None = None,
        precision: str = "f32",
        add_special_tokens: bool = True,
    ) -> Run:
        """See Model.run."""
        from ._forward import Run, request

        body, wanted = request(
            texts, capture, edits, logits, positions, stop_at_layer, precision, add_special_tokens
        )
        return Run(await self._forward(body), wanted, positions, self.model)

    async def _forward(self, body: dict[str, Any]) -> Any:
        from ._forward import mapped

        model = self.model
        if model._files:
            file = json.loads(await model._http.ask("/lab/forward", {**body, "transfer": "file"}))
            content = mapped(file["path"])
            if content is not None:
                return content
            model._files = False
        return bytearray(await model._http.ask("/lab/forward", body))

    async def generate(self, prompt: str | Sequence[Mapping[str, Any]], max_tokens: int = 64, **options: Any) -> Generated:
        """See Model.generate."""
        return await asyncio.to_thread(self.model.generate, prompt, max_tokens, **options)

    async def vector(
        self, name: str, positive: Sequence[str], negative: Sequence[str], layers: Sequence[int], **options: Any
    ) -> dict[int, Any]:
        """See Model.vector."""
        return await asyncio.to_thread(self.model.vector, name, positive, negative, layers, **options)

    async def probe(
        self, name: str, positive: Sequence[str], negative: Sequence[str], layer: int, **options: Any
    ) -> Probe:
        """See Model.probe."""
        return await asyncio.to_thread(self.model.probe, name, positive, negative, layer, **options)

    async def features(self, dictionary: str, text: str, layer: int, top: int = 10) -> list[dict[str, Any]]:
        """See Model.features."""
        return await asyncio.to_thread(self.model.features, dictionary, text, layer, top)

    async def weight(self, name: str) -> Any:
        """See Model.weight."""
        return await asyncio.to_thread(self.model.weight, name)

    async def tokenize(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """See Model.tokenize."""
        return await asyncio.to_thread(self.model.tokenize, text, add_special_tokens)

    async def to_string(self, tokens: Iterable[int]) -> str:
        """See Model.to_string."""
        return await asyncio.to_thread(self.model.to_string, tokens)


def connect(port: int = 8971, *, timeout: float = 600, api_key: str | None = None) -> Model:
    """Joins a running server (`tapline serve`) on this machine, and waits while it loads its model.

    Raises TaplineError if it still does after `timeout` seconds.
    """
    end = time.monotonic() + timeout
    while True:
        try:
            return Model(port, timeout, api_key=api_key)
        except TaplineError as error:
            if error.status != _UNAVAILABLE or time.monotonic() >= end:
                raise
        time.sleep(_RETRY)


def load(model: str, *options: str, timeout: float = 600, quiet: bool = False) -> Model:
    """Starts a server for a model (a hub id, a .gguf file, or "demo") and waits until it is ready.

    `options` are those of `tapline serve`, such as "--ctx-size", "4096". What the server prints while it downloads
    and loads goes to stderr unless `quiet`. The server ends with `close()` and with this process.

    The command is, in this order: the environment's TAPLINE_COMMAND, that of this package, that of this checkout,
    `tapline` on PATH.
    Raises TaplineError if there is none, or with the server's last line if it does not start.
    """
    words = [*command(), "serve", model, "--port", "0", *options]
    if not quiet:
        print(f"Starting {' '.join(words)}", file=sys.stderr)
    server = subprocess.Popen(
        words,
        env={**os.environ, "TAPLINE_PARENT": str(os.getpid())},  # ends with this process, also after kill -9
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    atexit.register(_end, server)
    port = _await_ready(server, quiet)
    try:
        loaded = Model(port, timeout)
    except BaseException:
        _end(server)
        raise
    loaded._server = server
    return loaded


def _await_ready(server: subprocess.Popen[bytes], quiet: bool) -> int:
    """The port from the line that says the server is ready. Later lines go to stderr in a thread."""
    output = server.stdout
    assert output is not None
    last = b""
    try:
        for line in output:
            if not quiet:
                sys.stderr.write(line.decode(errors="replace"))
            ready = _READY.search(line)
            if ready is not None:
                threading.Thread(target=_drain, args=(server, quiet), daemon=True).start()
                return int(ready.group(1))
            last = line.strip() or last
    except BaseException:
        _end(server)
        raise
    _end(server)
    raise TaplineError(f"The server did not start: {last.decode(errors='replace') or 'it printed nothing'}")


def _drain(server: subprocess.Popen[bytes], quiet: bool) -> None:
    assert server.stdout is not None
    for line in server.stdout:
        if not quiet:
            sys.stderr.write(line.decode(errors="replace"))


def _end(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def add(at: str, vector: Any, strength: float = 1, *, unit: str = "vector", **where: Any) -> dict[str, Any]:
    """Adds a vector times `strength`: h + strength * v.

    `at`: a point with its block, such as "blocks.5.hook_out". `vector`: an array, or the name of a stored vector.
    `unit`: "vector" as given, "unit" with length 1, "row_norm" with the length of the edited row.
    `positions`: "all" (default), "last", or token indices, negative ones from the end, or [first, last] ranges.
    `sequences`: indices of the texts to edit (default: all). `heads`, at head_out: which heads.
    """
    return _edit("steer", at, vector=vector, strength=strength, strength_unit=unit, **where)


def scale(at: str, factor: float, **where: Any) -> dict[str, Any]:
    """Multiplies rows: factor * h. See `add` for the rest."""
    return _edit("scale", at, strength=factor, **where)


def ablate(at: str, **where: Any) -> dict[str, Any]:
    """Sets rows to zero. See `add` for the rest."""
    return _edit("ablate", at, strength=1, **where)


def set_to(at: str, vector: Any, **where: Any) -> dict[str, Any]:
    """Replaces rows with a vector. See `add` for the rest."""
    return _edit("patch", at, vector=vector, strength=1, **where)


def project_out(at: str, vector: Any, strength: float = 1, **where: Any) -> dict[str, Any]:
    """Removes the component along a direction u: h - strength * (h.u) u. See `add` for the rest."""
    return _edit("project_out", at, vector=vector, strength=strength, **where)


def clamp(
    at: str,
    vector: Any,
    min: float | None = None,
    max: float | None = None,
    *,
    strength: float = 1,
    unit: str = "unit",
    **where: Any,
) -> dict[str, Any]:
    """Clips the projection on a direction u: h + strength * (clip(h.u, min, max) - h.u) u, with bounds in `unit`."""
    return _edit("clamp", at, vector=vector, min=min, max=max, strength=strength, strength_unit=unit, **where)


def _edit(kind: str, at: str, **fields: Any) -> dict[str, Any]:
    from ._forward import edit

    unknown = set(fields) - {
        *("vector", "strength", "strength_unit", "min", "max"),
        *("positions", "sequences", "heads"),
    }
    if unknown:
        raise TypeError(f"An edit has no {', '.join(sorted(unknown))}.")
    return edit(kind, at, **fields)
