"""The result of a forward call: arrays by name, mapped from shared memory. Requires NumPy."""

from __future__ import annotations

import itertools
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ._errors import TaplineError

try:
    import numpy as np
except ImportError:
    raise TaplineError("Forward calls require NumPy, which is not installed: pip install numpy.") from None

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._model import Model

    Array: TypeAlias = NDArray[Any]

_TYPES = {"F32": "<f4", "F16": "<f2", "I32": "<i4"}

# Names with the same values, as the service reads them: ours, then TransformerLens's.
_NAMES = [
    ["block_in.L", "blocks.L.hook_in", "blocks.L.hook_resid_pre"],
    ["attention.L", "blocks.L.attn.hook_pattern"],
    ["head_out.L", "blocks.L.attn.hook_z"],
    ["attn_out.L", "blocks.L.hook_attn_out", "blocks.L.attn.hook_out"],
    ["mid.L", "blocks.L.hook_resid_mid", "blocks.L.ln2.hook_in"],
    ["ffn_in.L", "blocks.L.mlp.hook_in", "blocks.L.ln2.hook_out"],
    ["ffn_out.L", "blocks.L.hook_mlp_out", "blocks.L.mlp.hook_out"],
    ["block_out.L", "blocks.L.hook_out", "blocks.L.hook_resid_post"],
]
_POINTS = {name: names[0].removesuffix(".L") for names in _NAMES for name in names}
_LAYER = re.compile(r"(?<=\.)[0-9]+(?=\.|\Z)")


class Activations(np.ndarray[Any, Any]):  # type: ignore[misc]
    """A NumPy array of activations or logits, mapped from shared memory; `torch.from_dlpack` takes it without a copy.

    Its slices have the same methods; results of arithmetic are plain arrays.
    """

    def numpy(self) -> Array:
        """The same values as a plain array, without a copy."""
        plain: Array = self.view(np.ndarray)
        return plain

    def to_dataframe(self) -> Any:
        """One row per sequence and token, one column per value; an array of one sequence or token is one. Requires pandas."""
        from .frames import captured

        rows = self.numpy()
        return captured(list(rows.reshape((1,) * (3 - rows.ndim) + rows.shape)))

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if array.ndim == 0 else np.asarray(array)


class Cache(Mapping[str, Any]):
    """Captured activations by name, as NumPy arrays; `torch.from_dlpack` takes them without a copy.

    A name may be in any form that the service accepts: `cache["block_out.5"]` is `cache["blocks.5.hook_out"]`.
    Shapes are [sequences, tokens, hidden], for heads' outputs [sequences, tokens, heads, head size], and for
    attention [sequences, heads, tokens, tokens]. If the sequences differ in length, a value is a list with one
    array per sequence, without the first dimension.
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = dict(arrays)
        self._keys = {_key(name): name for name in self._arrays}

    def __getitem__(self, name: str) -> Any:
        known = self._keys.get(_key(name))
        if known is None:
            names = ", ".join(list(self._arrays)[:6]) or "nothing"
            raise KeyError(f"{name} was not captured; this run has {names}{'…' if len(self) > 6 else ''}.")
        return self._arrays[known]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Cache({', '.join(self._arrays)})"

    def layers(self, point: str = "block_out") -> list[int]:
        """The captured layers of a point, ascending."""
        split = (_key(name).rpartition(".") for name in self)
        return sorted(int(layer) for at, _, layer in split if at == point)

    def stack(self, point: str = "block_out") -> Array:
        """Stacks a point over its captured layers, in order: [layers, sequences, tokens, hidden].

        Raises TaplineError if it was captured nowhere, and ValueError if the sequences differ in length.
        """
        arrays = [self[f"{point}.{layer}"] for layer in self.layers(point)]
        if not arrays:
            raise TaplineError(f"{point} was not captured; this run has {', '.join(self) or 'nothing'}.")
        if any(isinstance(array, list) for array in arrays):
            raise ValueError("The sequences differ in length; take each from the lists in the cache.")
        return np.stack(arrays)


class Run:
    """One forward call."""

    tokens: list[Array]
    """Token ids of each sequence, int32."""
    cache: Cache
    logits: Any
    """[sequences, rows, vocabulary], or a list with [rows, vocabulary] per sequence; None if not requested."""
    effects: list[list[dict[str, float]]]
    """For each sequence and edit: the number of edited rows, the mean norm of these rows and of the change."""
    model: str
    waited_ms: float
    """Time until the server's running iteration had ended."""
    forward_ms: float
    """Time of the forward passes themselves."""

    def __init__(self, content: Any, logits: object, positions: object, model: Model | None = None) -> None:
        self._model = model
        arrays, metadata = _tensors(content)
        lengths = [int(length) for length in arrays.pop("lengths")]
        flat = arrays.pop("tokens").reshape(-1)
        ends = [0, *itertools.accumulate(lengths)]
        self.tokens = [flat[ends[i] : ends[i + 1]] for i in range(len(lengths))]
        even = len(set(lengths)) == 1
        arrays = {name: array.view(Activations) for name, array in arrays.items()}
        kept = arrays.pop("logits", None)
        self._logits_of = logits
        self.logits = kept if kept is None or even or logits != "all" else _split(kept, ends)
        named: dict[str, Any] = {}
        for name, array in arrays.items():
            whole, slash, _ = name.rpartition("/")
            if slash:  # attention of sequences that differ in length
                named.setdefault(whole, []).append(array)
            else:
                named[name] = array if even or positions is not None else _split(array, ends)
        self.cache = Cache(named)
        self.effects = json.loads(metadata["effects"])
        self.model = metadata["model"]
        self.waited_ms = float(metadata["waited_ms"])
        self.forward_ms = float(metadata["forward_ms"])

    def __repr__(self) -> str:
        lengths = ", ".join(str(len(tokens)) for tokens in self.tokens)
        return f"Run({self.model}, tokens: {lengths}, captures: {len(self.cache)}, {self.forward_ms:.1f} ms)"

    def str_tokens(self, sequence: int = 0) -> list[str]:
        """The text of each token of a sequence, from the server's tokenizer.

        Tokens with a part of a character only have U+FFFD. Raises TaplineError if the run does not know its model.
        """
        if self._model is None:
            raise TaplineError("This run does not know its model.")
        tokens = self.tokens[sequence].tolist()
        texts = {token: self._model.to_string([token]) for token in set(tokens)}
        return [texts[token] for token in tokens]

    def log_probs(self) -> Any:
        """Natural log-probabilities from the logits, in float64; the shape of `logits`."""
        logits = self._with_logits()
        return [log_softmax(one) for one in logits] if isinstance(logits, list) else log_softmax(logits)

    def loss(self, per_token: bool = False) -> Any:
        """Mean cross-entropy of each next token over all sequences, in nats; needs logits="all".

        With `per_token`, a list with [tokens - 1] per sequence.
        """
        if not isinstance(self._logits_of, str) or self._logits_of != "all":
            raise ValueError(f'A loss needs logits="all", got {self._logits_of!r}.')
        losses = []
        for tokens, log_probs in zip(self.tokens, self.log_probs()):
            losses.append(-log_probs[np.arange(len(tokens) - 1), tokens[1:]])
        return losses if per_token else float(np.concatenate(losses).mean())

    def logit_diff(self, token: int, other: int, row: int = -1) -> Array:
        """Logit of one token minus another's at a row with logits (default: the last), [sequences]."""
        return np.array([float(one[row, token]) - float(one[row, other]) for one in self._with_logits()])

    def kl(self, other: Run) -> Array:
        """KL divergence of the last rows' next-token distributions, of this run from `other`, in nats, [sequences]."""
        mine, theirs = ([log_softmax(one[-1]) for one in run._with_logits()] for run in (self, other))
        if len(mine) != len(theirs):
            raise ValueError(f"The runs have {len(mine)} and {len(theirs)} sequences.")
        return np.array([float((np.exp(p) * (p - q)).sum()) for p, q in zip(mine, theirs)])

    def to_dataframe(self, name: str) -> Any:
        """One row per sequence and captured token of a point, one column per value. Requires pandas."""
        from .frames import captured

        return captured(list(self.cache[name]))

    def lens(self, sequence: int = 0) -> Any:
        """The logit lens at each captured block output of a sequence, as a figure that Jupyter displays.

        Computed here with the model's own weights. Raises TaplineError without block outputs of whole texts, or if the
        final norm and unembedding do not give the model's own logits.
        """
        from ._lens import lens

        if self._model is None:
            raise TaplineError("This run does not know its model.")
        return lens(self._model, self, sequence)

    def _repr_html_(self) -> str:
        """Shows the run in a notebook: the lens of its first sequence, and a table of its captures."""
        from ._lens import run_as_html

        return run_as_html(self, self._model)

    def _with_logits(self) -> Any:
        if self.logits is None:
            raise ValueError('This run has no logits; ask for logits="last" or "all".')
        return self.logits


def tensors(content: bytes) -> dict[str, Array]:
    """The tensors of a small safetensors file, writable."""
    return _tensors(bytearray(content))[0]


def mapped(path: str) -> mmap.mmap | None:
    """A file in shared memory, which is deleted: its pages are freed with the arrays. None if it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        os.unlink(path)
        # Private pages, so that arrays are writable, as PyTorch wants them, without a copy before the first write.
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
    finally:
        os.close(descriptor)


def sequences(texts: Any) -> list[str | list[int]]:
    """One text, one sequence of token ids, or several of them, as the service takes them."""
    if isinstance(texts, str):
        return [texts]
    if hasattr(texts, "detach"):  # a tensor, on any device
        texts = texts.detach().cpu().numpy()
    if isinstance(texts, np.ndarray):
        texts = texts.tolist()
    listed = list(texts)
    if listed and all(isinstance(one, (int, np.integer)) for one in listed):
        return [[int(one) for one in listed]]
    return [one if isinstance(one, str) else sequences(one)[0] for one in listed]


def request(
    texts: Any,
    capture: str | Sequence[str],
    edits: Iterable[Mapping[str, Any]],
    logits: str | Sequence[int] | None,
    positions: Sequence[int] | None,
    stop_at_layer: int | None,
    precision: str,
    add_special_tokens: bool,
) -> tuple[dict[str, Any], Any]:
    """The body of a forward call with the arguments of Model.run, and which logits it asks for."""
    names = [capture] if isinstance(capture, str) else list(capture)
    wanted = logits if logits is not None else ("none" if names else "last")
    body: dict[str, Any] = {
        "sequences": sequences(texts),
        "capture": names,
        "edits": [dict(edit) for edit in edits],
        "logits": wanted if isinstance(wanted, str) else [int(at) for at in wanted],
        "precision": precision,
        "add_special_tokens": add_special_tokens,
    }
    if positions is not None:
        body["positions"] = [int(at) for at in positions]
    if stop_at_layer is not None:
        body["stop_at_layer"] = stop_at_layer
    return body, wanted


def edit(kind: str, at: str, /, **fields: Any) -> dict[str, Any]:
    """An edit as the service takes it, without fields that are None."""
    positions = fields.get("positions")
    if isinstance(positions, int):
        positions = [positions]
    if positions is not None and not isinstance(positions, str):
        fields["positions"] = [
            [int(at), int(at)] if isinstance(at, (int, np.integer)) else [int(end) for end in at] for at in positions
        ]
    vector = fields.get("vector")
    if vector is not None and not isinstance(vector, (str, Mapping)):
        fields["vector"] = {"base64": _base64(vector)}
    if fields.get("sequences") is not None:
        fields["sequences"] = [int(sequence) for sequence in fields["sequences"]]
    return {"kind": kind, "at": at, **{name: value for name, value in fields.items() if value is not None}}


def _base64(vector: Any) -> str:
    import base64

    if hasattr(vector, "detach"):
        vector = vector.detach().cpu().float().numpy()
    array = np.asarray(vector, "<f4")
    if not np.isfinite(array).all():
        raise ValueError("An edit's vector must have finite numbers only.")
    return base64.b64encode(array.reshape(-1).tobytes()).decode()


def _tensors(content: Any) -> tuple[dict[str, Array], dict[str, str]]:
    """Views of a safetensors file's tensors, and its metadata."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        kind = np.dtype(_TYPES[entry["dtype"]])
        count = (end - begin) // kind.itemsize
        arrays[name] = np.frombuffer(content, kind, count, start + begin).reshape(entry["shape"])
    return arrays, metadata


def _split(array: Array, ends: Sequence[int]) -> list[Array]:
    return [array[ends[i] : ends[i + 1]] for i in range(len(ends) - 1)]


def _key(name: str) -> str:
    """One name for all names of a point."""
    layer = _LAYER.search(name)
    if layer is None:
        return name
    point = _POINTS.get(f"{name[: layer.start()]}L{name[layer.end() :]}")
    return name if point is None else f"{point}.{layer.group()}"


def log_softmax(logits: Array) -> Array:
    wide = logits.astype(np.float64)
    shifted = wide - wide.max(axis=-1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result
