"""Arrays of forward calls: views for NumPy, PyTorch and pandas."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import tapline_lab as tl

try:
    import numpy as np
except ImportError:
    np = None

PORT = int(os.environ["TAPLINE_TEST_SERVING_PORT"])
TEXTS = ["The capital of France is", "Tom"]


@contextmanager
def data_frames() -> Iterator[list[dict[object, list[float]]]]:
    """The data frames made meanwhile, without pandas, which need not be installed."""
    frames: list[dict[object, list[float]]] = []

    class DataFrame(dict[object, list[float]]):
        """The part of pandas in use."""

        def __init__(self, rows: object) -> None:
            super().__init__(enumerate(np.asarray(rows).T.tolist()))
            frames.append(self)

        def insert(self, _: int, name: str, values: object) -> None:
            self[name] = values if isinstance(values, int) else list(values)  # type: ignore[call-overload]

    pandas: Any = types.ModuleType("pandas")
    pandas.DataFrame = DataFrame
    pandas.concat = lambda parts, ignore_index: parts
    with mock.patch.dict(sys.modules, {"pandas": pandas}):
        sys.modules.pop("tapline_lab.frames", None)
        yield frames
    sys.modules.pop("tapline_lab.frames", None)


@unittest.skipIf(np is None, "NumPy is not installed")
class TestArrays(unittest.TestCase):
    def setUp(self) -> None:
        self.run_ = tl.connect(PORT).run(TEXTS[0], ["block_out.3", "block_out.7"], logits="all")
        self.rows = self.run_.cache["block_out.3"]

    def test_numpy_is_a_plain_view(self) -> None:
        for array in (self.rows, self.rows[0, -1], self.run_.logits):
            plain = array.numpy()
            self.assertIs(type(plain), np.ndarray)
            self.assertEqual(plain.ctypes.data, array.ctypes.data)
            np.testing.assert_array_equal(plain, array)

    def test_arithmetic_gives_plain_arrays_and_numbers(self) -> None:
        self.assertIs(type(self.rows * 2), np.ndarray)
        self.assertIs(type(self.rows[0] - self.rows[0, -1]), np.ndarray)
        self.assertIs(type(self.rows.sum()), np.float32)
        self.assertIs(type(self.rows.mean(axis=1)), np.ndarray)
        self.assertIs(type(self.rows[0, 0, 0]), np.float32)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not installed")
    def test_torch_takes_arrays_without_a_copy(self) -> None:
        import torch

        for array in (self.rows, self.run_.logits, self.rows[0, 2:]):
            tensor = torch.from_dlpack(array)
            self.assertEqual(tensor.data_ptr(), array.ctypes.data)
            self.assertEqual(tuple(tensor.shape), array.shape)
            tensor[(0,) * array.ndim] = 0.25
            self.assertEqual(float(array[(0,) * array.ndim]), 0.25)

    def test_a_data_frame_has_a_row_per_token(self) -> None:
        run = tl.connect(PORT).run(TEXTS, "block_out.1")
        with data_frames() as frames:
            run.to_dataframe("block_out.1")
        self.assertEqual([frame["sequence"] for frame in frames], [0, 1])
        self.assertEqual([len(frame["row"]) for frame in frames], [len(tokens) for tokens in run.tokens])
        self.assertEqual(frames[1][127][-1], float(run.cache["block_out.1"][1][-1][127]))

    def test_slices_become_data_frames(self) -> None:
        with data_frames() as frames:
            for one in (self.rows, self.rows[0], self.rows[0, 2]):
                one.to_dataframe()
        count = self.rows.shape[1]
        self.assertEqual([len(frame["row"]) for frame in frames], [count, count, 1])
        self.assertEqual([frame[5][-1] for frame in frames], [float(self.rows[0, at, 5]) for at in (-1, -1, 2)])


if __name__ == "__main__":
    unittest.main()
