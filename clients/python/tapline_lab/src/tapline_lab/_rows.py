"""The files of an `extract` job as arrays. Imported only on demand, since it requires NumPy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ._row_files import Shard, open_folder
from ._shuffled import Shuffle, batches

import numpy as np  # after the module that says what to do without it

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]


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

    def __init__(self, layer: int, shards: Sequence[Shard], hidden: int) -> None:
        self.layer = layer
        self._shards = shards
        self._ends = np.cumsum([0, *(shard.rows for shard in shards)])
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
            result[here] = self._shards[part].floats(self.layer, chosen[here] - self._ends[part])
        return result

    def __iter__(self) -> Iterator[Any]:
        for shard in self._shards:
            yield from shard.floats(self.layer, slice(None))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("The rows of an extraction cannot become one array without a copy.")
        whole = np.concatenate([shard.floats(self.layer, slice(None)) for shard in self._shards])
        return whole if dtype is None else whole.astype(dtype)

    def shards(self) -> list[Array]:
        """The rows file by file, mapped without a copy; bfloat16 as uint16, which NumPy lacks."""
        return [shard[f"layer_{self.layer}"][0] for shard in self._shards]


class Rows:
    """An extraction: `rows[layer]`, one `TextRows` per text by iteration, and data sets for training.

    `path`: the folder of `tapline extract --out`, with one part or all parts of several machines, or its URL (`s3://`, `gs://`,
    `https://`; requires `tapline-lab[remote]`). Files are mapped, so an extraction may be larger than memory; those of a URL are
    downloaded to `cache` when they are first used (default: `~/.cache/tapline/rows`). `storage_options` go to fsspec.
    Raises TaplineError if it is incomplete or not an extraction.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cache: str | os.PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
    ) -> None:
        self._folder, indices = open_folder(path, cache, storage_options)
        self.path = path
        self.source: dict[str, Any] = indices[0]["source"]
        """Data, model and settings, from the index."""
        self.hidden = int(self.source["hidden"])
        self.layers = sorted(int(layer) for layer in self.source["layers"])
        self._shards = [Shard(self._folder, entry) for index in indices for entry in index["shards"]]
        self._by_layer: dict[int, LayerRows] = {}

    def __repr__(self) -> str:
        return f"Rows({str(self.path)!r}, layers {self.layers}, hidden size {self.hidden})"

    def __getitem__(self, layer: int) -> LayerRows:
        if layer not in self.layers:
            raise KeyError(f"Layer {layer} was not extracted; {self._folder.name} has {self.layers}.")
        if layer not in self._by_layer:
            self._by_layer[layer] = LayerRows(layer, self._shards, self.hidden)
        return self._by_layer[layer]

    def __len__(self) -> int:
        """The number of texts."""
        return sum(shard.texts for shard in self._shards)

    def __iter__(self) -> Iterator[TextRows]:
        """The texts in the order of the files."""
        for shard in self._shards:
            yield from self._texts(shard)

    def _texts(self, shard: Shard) -> Iterator[TextRows]:
        starts, indices, tokens = (shard[name][0] for name in ("text_starts", "text_indices", "token_ids"))
        for text, index in enumerate(indices):
            begin, end = int(starts[text]), int(starts[text + 1])
            span = slice(begin, end) if self._per_token else slice(text, text + 1)
            layers = {layer: shard.floats(layer, span) for layer in self.layers}
            yield TextRows(int(index), tokens[begin:end], layers)

    @property
    def _per_token(self) -> bool:
        return bool(self.source["rows"] == "all")

    def dataset(self, layer: int) -> Any:
        """The rows of a layer as a torch.utils.data.Dataset of float32 tensors [hidden]; also batches by a list of indices.

        Requires PyTorch.
        """
        from ._torch_rows import RowDataset

        return RowDataset(self[layer])

    def shuffled(
        self,
        layer: int,
        *,
        buffer: int = 65_536,
        seed: int = 0,
        skip_bos: bool = True,
        part: tuple[int, int] = (0, 1),
    ) -> Any:
        """The rows of a layer in random order, as a torch.utils.data.IterableDataset of float32 tensors [hidden].

        Shards are read in a random order, and their rows mix in a buffer of `buffer` rows, so that reading stays sequential. Each
        iteration is one epoch in a new order (`set_epoch` chooses it). Workers of a DataLoader, and `part` i of n for
        training on several machines, share the shards without overlap. `skip_bos` leaves out the rows of BOS tokens, whose norms
        are tens of times larger. Requires PyTorch.
        """
        from ._torch_rows import RowStream

        return RowStream(self._shuffle(layer, buffer, seed, skip_bos), part)

    def batches(
        self,
        layer: int,
        size: int,
        *,
        buffer: int = 65_536,
        seed: int = 0,
        epochs: int | None = 1,
        skip_bos: bool = True,
        part: tuple[int, int] = (0, 1),
    ) -> Iterator[Array]:
        """Batches of float32 [size, hidden] in the order of `shuffled`; `epochs=None` never ends."""
        return batches(self._shuffle(layer, buffer, seed, skip_bos), size, epochs, part)

    def data_provider(self, layer: int, size: int, *, device: Any = "cpu", **settings: Any) -> Iterator[Any]:
        """Batches as tensors [size, hidden] without an end: the `data_provider` of SAELens's `SAETrainer`.

        `settings`: those of `batches`. Requires PyTorch.
        """
        from ._torch_rows import tensors

        given: dict[str, Any] = {"epochs": None, **settings}
        return tensors(self.batches(layer, size, **given), device)

    def to_datasets(self) -> Any:
        """The texts as a Hugging Face `datasets.IterableDataset`, which reads the files and copies nothing.

        One example per text: `text` (its index in the data), `id`, `label` and `split` of the data where it has them, `token_ids`,
        and `layer_5` and so on, float32 [tokens, hidden], or [1, hidden] if the extraction has one row per text. Requires `datasets`.
        """
        from ._datasets import iterable_dataset

        return iterable_dataset(self)

    def _shuffle(self, layer: int, buffer: int, seed: int, skip_bos: bool) -> Shuffle:
        skipped = int(self.source.get("skipped_in_mean", 0)) if skip_bos else 0
        return Shuffle(self[layer]._shards, layer, self._per_token, skipped, buffer, seed)
