"""Data sets for PyTorch. Imported only on demand, since it requires PyTorch.

Their classes are defined in a module, so that workers of a DataLoader that do not fork can unpickle them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._errors import TaplineError
from ._shuffled import Shuffle

try:
    import torch
except ImportError:
    raise TaplineError("A data set requires PyTorch: pip install 'tapline-lab[torch]'.") from None

if TYPE_CHECKING:
    from ._rows import LayerRows


class RowDataset(torch.utils.data.Dataset):
    """A map-style data set of the rows of a layer."""

    def __init__(self, rows: LayerRows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: int) -> Any:
        return torch.from_numpy(self._rows[at])

    def __getitems__(self, at: list[int]) -> list[Any]:
        return list(torch.from_numpy(self._rows[at]))


class RowStream(torch.utils.data.IterableDataset):
    """An iterable-style data set; each worker of a DataLoader takes its share of the shards."""

    def __init__(self, shuffle: Shuffle, part: tuple[int, int]) -> None:
        self._shuffle = shuffle
        self._part = part
        self._epoch = 0

    def set_epoch(self, number: int) -> None:
        """The order of another epoch; without it, each iteration is the next one."""
        self._epoch = number

    def __iter__(self) -> Iterator[Any]:
        index, count = self._part
        worker = torch.utils.data.get_worker_info()
        if worker is not None:
            index, count = index * worker.num_workers + worker.id, count * worker.num_workers
        number, self._epoch = self._epoch, self._epoch + 1
        for rows in self._shuffle.epoch(number, (index, count)):
            yield from torch.from_numpy(rows)


def tensors(batches: Iterator[Any], device: Any) -> Iterator[Any]:
    """Batches as tensors on a device."""
    return (torch.from_numpy(batch).to(device) for batch in batches)
