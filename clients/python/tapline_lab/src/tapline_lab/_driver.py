"""The driver that TransformerLens's RemoteBridge runs on: its captures and edits as forward calls. Requires NumPy.

Nothing here needs PyTorch: arrays are NumPy's, which the bridge takes without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import TaplineError
from ._forward import sequences  # first: it says in a sentence that NumPy is missing

import numpy as np  # isort: skip

if TYPE_CHECKING:
    from ._model import Model

_MOST_SEQUENCES = 64
_MOST_EDITS = 1024
_KEYS = {
    "suppress": set[str](),
    "scale": {"factor"},
    "add": {"value"},
    "set": {"value"},
}
# What the bridge passes to every driver, and what only concerns drivers with a local module.
_WITHOUT_MEANING = {"output_attentions", "use_cache"}


class Hook(NamedTuple):
    """Where a hook point's values come from."""

    at: str
    """A point of the forward call with its block, such as "block_out.5"; or "logits"."""
    order: tuple[int, int]
    """Place in the order of computation."""
    width: int = 0
    """Numbers that an edit has per token; 0 for points that can only be read."""
    heads: int = 1
    """Into how many parts the width is divided."""
    read: str = ""
    """ "scale" and "normalized": what an RMS norm divides by, and the quotient."""

    @property
    def layer(self) -> int:
        """The last block that has to be computed for it; -1 for the first block's input and for logits."""
        name, _, block = self.at.partition(".")
        return -1 if name == "logits" else int(block) - (name == "block_in")


@dataclass
class _Rows:
    """Sequences without padding, and where they are in the caller's tensor."""

    tokens: list[list[int]]
    starts: list[int]
    length: int


class Driver:
    """TransformerLens's `Driver` on a served GGUF. `boot` makes one; see docs/transformer-lens.md."""

    provides_sequence_logits = True
    _supported_features = frozenset({"weight_access"})

    def __init__(
        self,
        model: Model,
        hooks: Mapping[str, Hook],
        *,
        architecture: str,
        bridge_config: Any,
        tokenizer: Any,
        other_hooks: Iterable[str] = (),
        eps: float = 1e-5,
        owned: bool = False,
    ) -> None:
        self.model = model
        self.hooks = dict(hooks)
        self.architecture = architecture
        self.bridge_config = bridge_config
        self.tokenizer = tokenizer
        self.supported_hook_points = frozenset(self.hooks)
        self.non_fireable_hook_points = frozenset(other_hooks) - self.supported_hook_points
        self._eps = eps
        self._owned = owned

    def forward(
        self,
        input_ids: Any = None,
        *,
        capture: Sequence[str] = (),
        intervene: Mapping[str, Any] | None = None,
        max_new_tokens: int = 1,
        return_logits: bool = True,
        attention_mask: Any = None,
        stop_at_layer: int | None = None,
        **others: Any,
    ) -> Any:
        """Runs token ids [batch, tokens], or lists of them that may differ in length, which are padded at the end.

        `capture`: names of hook points. `intervene`: by hook point a spec, or a list of them, applied in order:
        {"op": "add" | "set", "value": …}, {"op": "scale", "factor": …} or {"op": "suppress"}, each with "pos" (a
        token index or several; default: all), "sequences" (indices in the batch; default: all) and, at hook_z,
        "heads". A value is a number, a vector, or one vector per position of "pos". `attention_mask`: 0 for padding.
        `max_new_tokens`: how many tokens are appended greedily, as `new_tokens`. `stop_at_layer` computes only the
        blocks before it, without logits.
        """
        from transformer_lens.model_bridge.driver_protocol import ForwardResult

        unknown = sorted(name for name, value in others.items() if value is not None and name not in _WITHOUT_MEANING)
        if unknown:
            raise TypeError(f"The tapline driver has no {', '.join(unknown)}.")
        if input_ids is None:
            raise ValueError("The tapline driver needs input_ids.")
        hooks = {name: self._hook(name) for name in capture}
        rows = _rows_of(input_ids, attention_mask)
        edits = self._edits(intervene or {}, rows)
        named = [name for name, hook in hooks.items() if hook.at != "logits"]
        points = list(dict.fromkeys(hooks[name].at for name in named))
        wants_logits = stop_at_layer is None and (return_logits or len(named) < len(hooks))
        if not points and not wants_logits:
            return ForwardResult()
        parts = [
            self.model.run(
                rows.tokens[first:last],
                points,
                edits=_of_part(edits, first, last),
                logits="all" if wants_logits else "none",
                stop_at_layer=stop_at_layer,
            )
            for first, last in _parts(edits, len(rows.tokens))
        ]
        logits = _padded([run.logits for run in parts], rows, False) if wants_logits else None
        captured: dict[str, Any] = {}
        for name, hook in hooks.items():
            if hook.at == "logits":
                captured[name] = logits
                continue
            values = _padded([run.cache[hook.at] for run in parts], rows, hook.at.startswith("attention."))
            captured[name] = self._norm(hook.read, values)
        new_tokens = None
        if wants_logits and max_new_tokens > 0:
            first_new = np.array([one[-1].argmax() for run in parts for one in run.logits])
            new_tokens = self._continue(rows, intervene or {}, first_new, max_new_tokens)
        return ForwardResult(
            logits=logits if return_logits else None,
            captured=captured,
            new_tokens=new_tokens,
            raw_output=parts[0] if len(parts) == 1 else parts,
        )

    def close(self) -> None:
        """Ends the server, if `boot` started it."""
        if self._owned:
            self.model.close()

    def supports(self, feature: str) -> bool:
        return feature in self._supported_features

    def get_param(self, name: str) -> Any:
        """A weight by its name in the GGUF file, or None."""
        return self.model.weight(name) if name in self.model.tensors else None

    def _hook(self, name: str) -> Hook:
        hook = self.hooks.get(name)
        if hook is None:
            raise NotImplementedError(f"{name} is not a hook point that tapline can read of this model.")
        return hook

    def _norm(self, read: str, values: Any) -> Any:
        if read == "":
            return values
        scale = np.sqrt((values * values).mean(-1, keepdims=True, dtype=np.float32) + np.float32(self._eps))
        return scale if read == "scale" else values / scale

    def _continue(self, rows: _Rows, intervene: Mapping[str, Any], first: Any, count: int) -> Any:
        """Greedy continuations, [batch, count]: each step computes the whole sequence, with the same edits."""
        found = [first]
        tokens = [list(row) for row in rows.tokens]
        for _ in range(count - 1):
            for row, token in zip(tokens, found[-1].tolist()):
                row.append(token)
            longer = _Rows(tokens, rows.starts, max(map(len, tokens)))
            edits = self._edits(intervene, longer)
            runs = [
                self.model.run(tokens[first:last], edits=_of_part(edits, first, last), logits="last")
                for first, last in _parts(edits, len(tokens))
            ]
            found.append(np.array([one[-1].argmax() for run in runs for one in run.logits]))
        return np.stack(found, axis=1)

    def _edits(self, intervene: Mapping[str, Any], rows: _Rows) -> list[dict[str, Any]]:
        edits: list[dict[str, Any]] = []
        for name, given in intervene.items():
            hook = self._hook(name)
            if hook.width == 0:
                raise NotImplementedError(f"{name} can only be read; tapline cannot change it.")
            for spec in [given] if isinstance(given, Mapping) or callable(given) else given:
                edits.extend(_edits_of(name, hook, spec, rows))
        return edits


def _edits_of(name: str, hook: Hook, spec: Any, rows: _Rows) -> Iterable[dict[str, Any]]:
    """A spec as edits of the forward call, whose positions count without padding."""
    from . import _model as tl

    op = _checked(name, hook, spec)
    where: dict[str, Any] = {}
    if spec.get("heads") is not None:
        where["heads"] = [int(head) for head in spec["heads"]]
    width = hook.width if "heads" not in where else hook.width // hook.heads * len(where["heads"])
    chosen = spec.get("sequences")
    batch = range(len(rows.tokens)) if chosen is None else [int(one) for one in chosen]
    positions = spec.get("pos")
    if positions is not None:
        positions = [int(at) for at in ([positions] if isinstance(positions, int) else positions)]
    vectors = _vectors(name, spec.get("value"), width, positions) if op in ("add", "set") else [None]
    for group, at in _places(name, batch, positions, rows):
        for index, vector in enumerate(vectors):
            here = dict(where)
            if at is not None:
                here["positions"] = at if len(vectors) == 1 else [at[index]]
            if len(group) < len(rows.tokens):
                here["sequences"] = list(group)
            if op == "suppress":
                yield tl.ablate(hook.at, **here)
            elif op == "scale":
                yield tl.scale(hook.at, float(spec["factor"]), **here)
            else:
                yield tl.add(hook.at, vector, **here) if op == "add" else tl.set_to(hook.at, vector, **here)


def _checked(name: str, hook: Hook, spec: Any) -> str:
    """The op of a spec. Raises ValueError for what TransformerLens's own validation refuses."""
    if callable(spec):
        raise NotImplementedError(f"intervene at {name}: a spec with 'op' is needed; pass functions as hooks.")
    if not isinstance(spec, Mapping) or "op" not in spec:
        raise ValueError(f"intervene at {name}: a mapping with 'op' is needed, got {spec!r}.")
    op = spec["op"]
    if op not in _KEYS:
        raise ValueError(f"intervene at {name}: op must be {', '.join(sorted(_KEYS))}, got {op!r}.")
    missing = _KEYS[op] - set(spec)
    if missing:
        raise ValueError(f"intervene at {name}: {op} needs {', '.join(missing)}.")
    unknown = set(spec) - _KEYS[op] - {"op", "pos", "sequences", "heads"}
    if unknown:
        raise ValueError(f"intervene at {name}: {op} has no {', '.join(sorted(unknown))}.")
    if spec.get("heads") is not None and not hook.at.startswith("head_out."):
        raise ValueError(f"intervene at {name}: heads are only possible at hook_z.")
    return str(op)


def _vectors(name: str, value: Any, width: int, positions: list[int] | None) -> list[Any]:
    """One vector, or one per position."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().float().numpy()
    array = np.asarray(value, np.float32)
    if array.ndim == 0:
        return [np.full(width, array)]
    if array.size == width:
        return [array.reshape(-1)]
    if positions is not None and len(positions) == len(array) and array.size == width * len(array):
        return list(array.reshape(len(array), width))
    expected = f"{width} numbers" if positions is None else f"{width} numbers, or as many for each of its positions"
    raise ValueError(f"intervene at {name}: a value must be one number or {expected}, got shape {array.shape}.")


def _places(
    name: str, batch: Iterable[int], positions: list[int] | None, rows: _Rows
) -> list[tuple[tuple[int, ...], list[int] | None]]:
    """Sequences that share their positions without padding."""
    groups: dict[tuple[int, ...] | None, list[int]] = {}
    for sequence in batch:
        if not 0 <= sequence < len(rows.tokens):
            count = len(rows.tokens)
            raise ValueError(f"intervene at {name}: sequence {sequence} does not exist in a batch of {count}.")
        at = None
        if positions is not None:
            at = tuple(_without_padding(name, position, sequence, rows) for position in positions)
        groups.setdefault(at, []).append(sequence)
    return [(tuple(group), None if at is None else list(at)) for at, group in groups.items()]


def _without_padding(name: str, position: int, sequence: int, rows: _Rows) -> int:
    count = len(rows.tokens[sequence])
    found = position - rows.starts[sequence] if position >= 0 else count + position
    if not 0 <= found < count:
        place = f"sequence {sequence}, which has {count}"
        raise ValueError(f"intervene at {name}: pos {position} is not a token of {place}.")
    return found


def _rows_of(input_ids: Any, mask: Any) -> _Rows:
    shape = getattr(input_ids, "shape", None)
    if shape is not None and len(shape) not in (1, 2):
        raise ValueError(f"input_ids must be [tokens] or [batch, tokens], got shape {tuple(shape)}.")
    tokens = [[int(token) for token in row] for row in sequences(input_ids)]
    length = max(map(len, tokens))
    if mask is None:
        return _Rows(tokens, [0] * len(tokens), length)
    if hasattr(mask, "detach"):
        mask = mask.detach().cpu().numpy()
    kept = np.atleast_2d(np.asarray(mask)).astype(bool)
    if kept.shape != (len(tokens), length) or any(len(row) != length for row in tokens):
        raise ValueError(f"attention_mask must be [{len(tokens)}, {length}] like input_ids, got shape {kept.shape}.")
    starts = []
    for index, row in enumerate(kept):
        where = np.flatnonzero(row)
        if len(where) == 0 or where[-1] - where[0] + 1 != len(where):
            raise ValueError("attention_mask must have one run of tokens without gaps in each sequence.")
        starts.append(int(where[0]))
        tokens[index] = tokens[index][where[0] : where[-1] + 1]
    return _Rows(tokens, starts, length)


def _parts(edits: Sequence[Mapping[str, Any]], count: int) -> list[tuple[int, int]]:
    """Ranges of sequences that one call can take."""
    size = _MOST_SEQUENCES
    while size > 1 and any(
        len(_of_part(edits, first, min(first + size, count))) > _MOST_EDITS for first in range(0, count, size)
    ):
        size //= 2
    parts = [(first, min(first + size, count)) for first in range(0, count, size)]
    most = max(len(_of_part(edits, *part)) for part in parts)
    if most > _MOST_EDITS:
        raise TaplineError(f"One sequence would have {most} edits; at most {_MOST_EDITS} are possible.")
    return parts


def _of_part(edits: Sequence[Mapping[str, Any]], first: int, last: int) -> list[dict[str, Any]]:
    found = []
    for edit in edits:
        if "sequences" not in edit:
            found.append(dict(edit))
            continue
        inside = [sequence - first for sequence in edit["sequences"] if first <= sequence < last]
        if inside:
            found.append({**edit, "sequences": inside})
    return found


def _padded(parts: Sequence[Any], rows: _Rows, square: bool) -> Any:
    """Values of all sequences in the caller's shape, zero at padding; not copied if one call has them in that shape."""
    if len(parts) == 1 and not isinstance(parts[0], list) and len(rows.tokens[0]) == rows.length:
        return parts[0]
    each = [one for part in parts for one in part]
    heads = each[0].shape[:1] if square else ()
    tail = (rows.length,) if square else each[0].shape[1:]
    whole = np.zeros((len(each), *heads, rows.length, *tail), each[0].dtype)
    for index, (values, start) in enumerate(zip(each, rows.starts)):
        span = slice(start, start + len(rows.tokens[index]))
        if square:
            whole[index, :, span, span] = values
        else:
            whole[index, span] = values
    return whole
