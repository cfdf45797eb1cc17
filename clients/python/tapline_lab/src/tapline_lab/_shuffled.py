"""The rows of a layer in random order: shards in a random order, and a buffer in which their rows mix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ._row_files import Shard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Shuffle:
    """Which rows come, and in what order. The same settings give the same order on every machine."""

    shards: Sequence[Shard]
    layer: int
    per_token: bool
    skipped: int
    """Number of tokens at the start of each text whose rows are left out."""
    buffer: int
    seed: int

    def epoch(self, number: int, part: tuple[int, int] = (0, 1)) -> Iterator[Array]:
        """Every row of one epoch once, in pieces of float32 [n, hidden]. Part i of n takes every n-th shard."""
        # All parts shuffle the shards in the same way, so that together they have each of them once.
        order = np.random.default_rng([self.seed, number]).permutation(len(self.shards))[part[0] :: part[1]]
        random = np.random.default_rng([self.seed, number, *part])
        waiting: list[Array] = []
        count = 0
        for shard in order:
            for rows in self._pieces(self.shards[shard]):
                waiting.append(rows)
                count += len(rows)
                if count >= self.buffer:
                    mixed = np.concatenate(waiting)[random.permutation(count)]
                    count = self.buffer // 2
                    yield mixed[count:]
                    waiting = [mixed[:count]]
        if count > 0:
            yield np.concatenate(waiting)[random.permutation(count)]

    def _pieces(self, shard: Shard) -> Iterator[Array]:
        size = max(1, self.buffer // 2)
        left_out = self._left_out(shard)
        for begin in range(0, shard.rows, size):
            end = min(begin + size, shard.rows)
            rows = shard.floats(self.layer, slice(begin, end))
            yield rows if left_out is None else rows[~left_out[begin:end]]

    def _left_out(self, shard: Shard) -> Array | None:
        if not self.per_token or self.skipped == 0:
            return None
        starts = shard["text_starts"][0]
        mask = np.zeros(shard.rows, bool)
        for offset in range(self.skipped):
            mask[np.minimum(starts[:-1] + offset, starts[1:] - 1)] = True
        return mask


def batches(shuffle: Shuffle, size: int, epochs: int | None, part: tuple[int, int]) -> Iterator[Array]:
    """Batches of float32 [size, hidden]; rows that remain at the end of the last epoch and fill no batch are left out."""
    rest: list[Array] = []
    count = number = 0
    while epochs is None or number < epochs:
        empty = True
        for rows in shuffle.epoch(number, part):
            empty = False
            rest.append(rows)
            count += len(rows)
            if count < size:
                continue
            whole = np.concatenate(rest)
            full = count - count % size
            yield from whole[:full].reshape(-1, size, whole.shape[1])
            rest, count = [whole[full:]], count - full
        if empty:
            return
        number += 1
