"""Extractions read as arrays, against files of the Lab in all three types."""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import tapline_lab as tl
from tapline_lab import Lab, TaplineError

try:
    import numpy as np
except ImportError:
    np = None

TEXTS = ["The capital of France is", "Tom", *(f"Lucy likes the city of number {n}" for n in range(40))]


@unittest.skipIf(np is None, "NumPy is not installed")
class TestRows(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        lab = Lab(os.environ["TAPLINE_TEST_LAB"])
        cls.model = tl.connect(int(os.environ["TAPLINE_TEST_SERVING_PORT"]))
        data = Path(cls.folder.name) / "texts.txt"
        data.write_text("\n".join(TEXTS) + "\n")
        for kind in ("f32", "f16", "bf16"):
            settings = {"layers": [2, 7], "rows": "all", "dtype": kind, "shard_tokens": 256}
            lab.wait(lab.extract("demo", data, Path(cls.folder.name) / kind, **settings))
        lab.wait(lab.extract("demo", data, Path(cls.folder.name) / "last", layers=[2], rows="last"))

    def rows(self, name: str) -> tl.Rows:
        return tl.Rows(Path(self.folder.name) / name)

    def test_all_types_hold_the_models_own_rows(self) -> None:
        found = self.model.run(TEXTS, ["block_out.2", "block_out.7"])
        for layer in (2, 7):
            own = np.concatenate(found.cache[f"block_out.{layer}"])
            for kind, bound in (("f32", 5e-3), ("f16", 5e-3), ("bf16", 1e-2)):
                rows = self.rows(kind)
                self.assertEqual(rows.layers, [2, 7])
                read = np.asarray(rows[layer])
                self.assertEqual((read.dtype, read.shape), (np.float32, own.shape))
                self.assertLess(np.linalg.norm(read - own), bound * np.linalg.norm(own), f"{kind}, layer {layer}")

    def test_bfloat16_is_the_rounded_float32(self) -> None:
        exact, short = np.asarray(self.rows("f32")[7]), np.asarray(self.rows("bf16")[7])
        self.assertTrue((np.abs(short - exact) <= np.abs(exact) / 256 + 1e-30).all())
        self.assertGreater(float(np.abs(short - exact).max()), 0)

    def test_rows_are_chosen_across_files(self) -> None:
        rows = self.rows("f32")
        self.assertGreater(len(rows[2].shards()), 1)
        whole = np.asarray(rows[2])
        np.testing.assert_array_equal(rows[2][250:265], whole[250:265])
        np.testing.assert_array_equal(rows[2][[-1, 0, 260]], whole[[-1, 0, 260]])
        np.testing.assert_array_equal(rows[2][-2], whole[-2])
        np.testing.assert_array_equal(np.stack(list(rows[2])), whole)
        mask = np.arange(len(whole)) % 2 == 0
        np.testing.assert_array_equal(rows[2][mask], whole[mask])
        with self.assertRaisesRegex(IndexError, "does not exist; layer 2 has"):
            rows[2][len(whole)]
        with self.assertRaisesRegex(KeyError, "Layer 3 was not extracted"):
            rows[3]

    def test_texts_come_with_their_tokens_and_rows(self) -> None:
        texts = list(self.rows("f16"))
        self.assertEqual(sorted(text.index for text in texts), list(range(len(TEXTS))))
        for text in texts:
            self.assertEqual(text.token_ids.tolist(), self.model.tokenize(TEXTS[text.index]))
            self.assertEqual(text.layers[7].shape, (len(text.token_ids), 128))
        single = list(self.rows("last"))
        self.assertEqual([text.layers[2].shape for text in single], [(1, 128)] * len(TEXTS))
        self.assertEqual(len(self.rows("last")), len(TEXTS))

    def test_torch_batches_are_the_rows(self) -> None:
        try:
            import torch
        except ImportError:
            with self.assertRaisesRegex(TaplineError, "requires PyTorch"):
                self.rows("f32").dataset(2)
            return
        rows = self.rows("f32")
        batches = list(torch.utils.data.DataLoader(rows.dataset(2), batch_size=4))
        np.testing.assert_array_equal(torch.cat(batches).numpy(), np.asarray(rows[2]))

    def test_data_sets_reach_workers_that_do_not_fork(self) -> None:
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        rows = self.rows("f32")
        whole = np.asarray(rows[2])
        settings = {"batch_size": 64, "num_workers": 2, "multiprocessing_context": "spawn"}
        batches = list(torch.utils.data.DataLoader(rows.dataset(2), **settings))
        np.testing.assert_array_equal(torch.cat(batches).numpy(), whole)
        stream = rows.shuffled(2, buffer=32, skip_bos=False)
        found = torch.cat(list(torch.utils.data.DataLoader(stream, **settings))).numpy()
        self.assertEqual(_counts(found), _counts(whole))

    def test_an_epoch_has_every_row_once_in_random_order(self) -> None:
        rows = self.rows("f32")
        whole = np.asarray(rows[2])
        # Text i begins with a BOS token, in the row where the tokens of the texts before it end.
        first = np.cumsum([0, *(len(text.token_ids) for text in rows)])[:-1]
        kept = np.delete(whole, first, axis=0)
        self.assertEqual(rows.source["skipped_in_mean"], 1)
        for skip, expected in ((True, kept), (False, whole)):
            for buffer in (16, 10_000):
                found = list(rows.batches(2, 8, buffer=buffer, seed=3, skip_bos=skip))
                self.assertEqual({batch.shape for batch in found}, {(8, 128)})
                mixed = np.concatenate(found)
                self.assertEqual(len(mixed), len(expected) - len(expected) % 8)
                self.assertFalse(np.array_equal(mixed, expected[: len(mixed)]))
                # No two tokens of these texts have the same row, except copies of the same beginning of a text.
                missing = _counts(expected) - _counts(mixed)
                self.assertEqual((sum(missing.values()), sum((_counts(mixed) - _counts(expected)).values())), (len(expected) % 8, 0))
        again = np.concatenate(list(rows.batches(2, 8, buffer=16, seed=3)))
        np.testing.assert_array_equal(again, np.concatenate(list(rows.batches(2, 8, buffer=16, seed=3))))
        self.assertFalse(np.array_equal(again, np.concatenate(list(rows.batches(2, 8, buffer=16, seed=4)))))

    def test_parts_share_an_epoch_without_overlap(self) -> None:
        rows = self.rows("f32")
        count = len(rows[2].shards())
        self.assertGreater(count, 1)
        parts = [list(rows.batches(2, 1, skip_bos=False, part=(part, 2))) for part in range(2)]
        self.assertTrue(all(parts))
        self.assertEqual(_counts(np.concatenate([*parts[0], *parts[1]])), _counts(np.asarray(rows[2])))

    def test_batches_continue_into_the_next_epoch(self) -> None:
        rows = self.rows("last")
        endless = rows.batches(2, 25, epochs=None)
        found = np.concatenate([next(endless) for _ in range(5)])
        whole = np.asarray(rows[2])
        # 42 rows per epoch: 125 are two epochs and 41 of the third.
        self.assertEqual(_counts(found[:42]), _counts(whole))
        self.assertEqual(_counts(found[42:84]), _counts(whole))
        self.assertEqual(sum((_counts(whole) - _counts(found[84:])).values()), 1)
        self.assertFalse(np.array_equal(found[:42], found[42:84]))

    def test_a_shuffled_data_set_is_divided_among_workers(self) -> None:
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        rows = self.rows("f32")
        stream = rows.shuffled(2, buffer=32, skip_bos=False)
        for workers in (0, 2):
            loader = torch.utils.data.DataLoader(stream, batch_size=8, num_workers=workers)
            found = torch.cat(list(loader)).numpy()
            self.assertEqual(_counts(found), _counts(np.asarray(rows[2])), f"{workers} workers")
        stream.set_epoch(0)
        first = torch.stack(list(stream))
        second = torch.stack(list(stream))
        self.assertFalse(torch.equal(first, second))
        stream.set_epoch(0)
        self.assertTrue(torch.equal(first, torch.stack(list(stream))))

    def test_other_folders_are_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(TaplineError, "has no index.json"):
                tl.Rows(folder)
            index = json.loads((Path(self.folder.name) / "f32" / "index.json").read_text())
            (Path(folder) / "index.json").write_text(json.dumps({**index, "complete": False}))
            with self.assertRaisesRegex(TaplineError, "is incomplete; run the same command again"):
                tl.Rows(folder)
            (Path(folder) / "index.json").write_text("{}")
            with self.assertRaisesRegex(TaplineError, "not the index of an extraction"):
                tl.Rows(folder)


def _counts(rows: np.ndarray) -> Counter[bytes]:
    return Counter(row.tobytes() for row in rows)


if __name__ == "__main__":
    unittest.main()
