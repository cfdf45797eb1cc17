"""The files of an `extract` job as arrays. Imported only on demand, since it requires NumPy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ._errors import TaplineError

try:
    import numpy as np
except ImportError:
    raise TaplineError("Extractions require NumPy, which is not installed: pip install numpy.") from None

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

_FORMAT = "tapline extraction 1"
_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I32": "<i4"}


@dataclass(frozen=True)
class TextRows:
    """One text of an extraction."""

    index: int
    """Which text of the data it is, from 0."""
    token_ids: Array
    layers: dict[int, Array]
    """float32 [tokens, hidden] of each layer, or [1, hidden] if the extraction has one row per text."""


class LayerRows(Sequence[Any]):
    """All rows of one layer, read when they are used: `rows[5][0:1000]` is float32 [1000, hidden].

    An index, a slice, or a list or array of indices selects rows; `np.asarray(rows[5])` reads all of them.
    """

    def __init__(self, layer: int, parts: Sequence[tuple[Array, str]], hidden: int) -> None:
        self.layer = layer
        self._parts = [part for part, _ in parts]
        self._types = [kind for _, kind in parts]
        self._ends = np.cumsum([0, *(len(part) for part in self._parts)])
        self.shape = (int(self._ends[-1]), hidden)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"LayerRows(layer {self.layer}, {self.shape[0]} rows of {self.shape[1]})"

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            chosen = np.arange(*rows.indices(len(self)))
        elif isinstance(rows, (int, np.integer)):
            return self[[int(rows)]][0]
        else:
            chosen = np.asarray(rows)
            if chosen.dtype == bool:
                chosen = np.flatnonzero(chosen)
            chosen = chosen.astype(np.int64)
        if len(chosen) and not (-len(self) <= chosen.min() and chosen.max() < len(self)):
            raise IndexError(f"Row {int(chosen.max())} does not exist; layer {self.layer} has {len(self)} rows.")
        chosen = np.where(chosen < 0, chosen + len(self), chosen)
        result = np.empty((len(chosen), self.shape[1]), np.float32)
        owner = np.searchsorted(self._ends, chosen, side="right") - 1
        for part in np.unique(owner):
            here = owner == part
            result[here] = self._as_float(part, self._parts[part][chosen[here] - self._ends[part]])
        return result

    def __iter__(self) -> Iterator[Any]:
        for part, values in enumerate(self._parts):
            yield from self._as_float(part, values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("The rows of an extraction cannot become one array without a copy.")
        whole = np.concatenate([self._as_float(part, values) for part, values in enumerate(self._parts)])
        return whole if dtype is None else whole.astype(dtype)

    def shards(self) -> list[Array]:
        """The rows file by file, mapped without a copy; bfloat16 as uint16, which NumPy lacks."""
        return list(self._parts)

    def _as_float(self, part: int, values: Array) -> Array:
        if self._types[part] == "BF16":
            return (values.astype(np.uint32) << 16).view(np.float32)
        return np.asarray(values, np.float32)


class Rows:
    """An extraction's folder: `rows[layer]`, one `TextRows` per text by iteration, and a torch data set.

    `path`: the folder of `tapline extract --out`, with one part or all parts of several machines. Files are
    mapped, so an extraction may be larger than memory. Raises TaplineError if it is incomplete or not an extraction.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        names = sorted(self.path.glob("index*.json"))
        if not names:
            raise TaplineError(f"{self.path} has no index.json: it is not the folder of an extraction.")
        indices = [_index(name) for name in names]
        self.source: dict[str, Any] = indices[0]["source"]
        """Data, model and settings, from the index."""
        self.hidden = int(self.source["hidden"])
        shards = [shard for index in indices for shard in index["shards"]]
        self._files = [_tensors(self.path / shard["file"]) for shard in shards]
        self.layers = sorted(int(name[len("layer_") :]) for name in self._files[0] if name.startswith("layer_"))
        self._by_layer: dict[int, LayerRows] = {}

    def __repr__(self) -> str:
        return f"Rows({str(self.path)!r}, layers {self.layers}, hidden size {self.hidden})"

    def __getitem__(self, layer: int) -> LayerRows:
        if layer not in self.layers:
            raise KeyError(f"Layer {layer} was not extracted; {self.path} has {self.layers}.")
        if layer not in self._by_layer:
            parts = [file[f"layer_{layer}"] for file in self._files]
            self._by_layer[layer] = LayerRows(layer, parts, self.hidden)
        return self._by_layer[layer]

    def __len__(self) -> int:
        """The number of texts."""
        return sum(len(file["text_indices"][0]) for file in self._files)

    def __iter__(self) -> Iterator[TextRows]:
        """The texts in the order of the files."""
        first = 0
        for file in self._files:
            starts, indices, tokens = (file[name][0] for name in ("text_starts", "text_indices", "token_ids"))
            count = len(file[f"layer_{self.layers[0]}"][0])
            per_token = count == int(starts[-1])
            for text, index in enumerate(indices):
                begin, end = int(starts[text]), int(starts[text + 1])
                span = slice(first + begin, first + end) if per_token else slice(first + text, first + text + 1)
                yield TextRows(int(index), tokens[begin:end], {layer: self[layer][span] for layer in self.layers})
            first += count

    def dataset(self, layer: int) -> Any:
        """The rows of a layer as a torch.utils.data.Dataset of float32 tensors [hidden]; also batches by a list of indices.

        Requires PyTorch.
        """
        try:
            import torch
        except ImportError:
            raise TaplineError("A data set requires PyTorch: pip install 'tapline-lab[torch]'.") from None
        return type("RowDataset", (_RowDataset, torch.utils.data.Dataset), {})(self[layer], torch.from_numpy)


class _RowDataset:
    """A map-style data set."""

    def __init__(self, rows: LayerRows, tensor: Callable[[Any], Any]) -> None:
        self._rows = rows
        self._tensor = tensor

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: int) -> Any:
        return self._tensor(self._rows[at])

    def __getitems__(self, at: list[int]) -> list[Any]:
        return list(self._tensor(self._rows[at]))


def _index(path: Path) -> dict[str, Any]:
    try:
        index = json.loads(path.read_bytes())
        known = index["format"] == _FORMAT
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise TaplineError(f"{path} is not the index of an extraction ({_FORMAT}).")
    if not index["complete"]:
        raise TaplineError(f"The extraction in {path.parent} is incomplete; run the same command again to finish it.")
    found: dict[str, Any] = index
    return found


def _tensors(path: Path) -> dict[str, tuple[Array, str]]:
    """The tensors of a safetensors file, mapped, with their types. BF16 has the type uint16."""
    try:
        content = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise TaplineError(f"{path} cannot be read: {error}.") from error
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:start].tobytes())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _TYPES:
            raise TaplineError(f"{name} in {path} has the type {entry['dtype']}; known are {', '.join(_TYPES)}.")
        begin, end = entry["data_offsets"]
        if start + end > len(content):
            raise TaplineError(f"{path} ends after {len(content)} bytes; its header names {start + end}.")
        raw = np.asarray(content[start + begin : start + end])
        tensors[name] = raw.view(_TYPES[entry["dtype"]]).reshape(entry["shape"]), entry["dtype"]
    return tensors
