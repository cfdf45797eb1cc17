"""The table of an extraction, read by DuckDB and Polars, and its texts as a Hugging Face data set."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import unittest
from pathlib import Path

import datasets
import duckdb
import numpy as np
import polars
import tapline_lab as tl

ENTRIES = [
    {"id": f"t{n}", "text": f"The capital of country {n} is" + " very" * (n % 5), "label": n % 2, "split": ("train", "test")[n % 3 == 0]}
    for n in range(60)
]
ENTRIES[7] = {"text": "No label, no split, no id"}
ENTRIES[8] = {"id": 8, "prompt": "Where is Tom?", "text": " Tom is in Paris.", "label": "city", "split": "train"}


class TestTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        data = cls.folder / "texts.jsonl"
        data.write_text("".join(json.dumps(entry) + "\n" for entry in ENTRIES))
        lab = tl.Lab(os.environ["TAPLINE_TEST_LAB"])
        for kind in ("all", "last"):
            lab.wait(lab.extract("demo", data, cls.folder / kind, layers=[2, 5], rows=kind, shard_tokens=256))
        for part in range(2):
            lab.wait(lab.extract("demo", data, cls.folder / "parts", layers=[2], rows="all", shard_tokens=256, shard=[part, 2]))

    def expected(self, index: int) -> tuple[object, ...]:
        entry = ENTRIES[index]
        about = [None if entry.get(name) is None else str(entry[name]) for name in ("id", "label", "split")]
        return (*about, hashlib.sha256(str(entry["text"]).encode()).hexdigest())

    def test_duckdb_and_polars_find_what_the_data_says(self) -> None:
        for name, pattern in (("all", "index.parquet"), ("last", "index.parquet"), ("parts", "index-*.parquet")):
            path = str(self.folder / name / pattern)
            in_duckdb = duckdb.sql(f"SELECT text, id, label, split, sha256 FROM '{path}' ORDER BY text").fetchall()
            self.assertEqual([row[0] for row in in_duckdb], list(range(60)), name)
            self.assertEqual([row[1:] for row in in_duckdb], [self.expected(n) for n in range(60)], name)
            in_polars = polars.read_parquet(path).sort("text").select("text", "id", "label", "split", "sha256").rows()
            self.assertEqual(in_polars, in_duckdb)
        table = polars.scan_parquet(self.folder / "all" / "index.parquet")
        chosen = table.filter((polars.col("split") == "test") & (polars.col("label") == "1")).select("text").collect()
        # Every third text, from 0, is a test text; of these the odd ones have label 1.
        self.assertEqual(chosen["text"].to_list(), list(range(3, 60, 6)))

    def test_places_lead_to_the_rows_of_a_text(self) -> None:
        for name in ("all", "last"):
            rows = tl.Rows(self.folder / name)
            texts = {text.index: text for text in rows}
            self.assertGreater(len(rows._shards), 1)
            index = json.loads((self.folder / name / "index.json").read_text())
            mapped = {
                shard["file"]: np.memmap(self.folder / name / shard["file"], "<f4", "r", shard["offsets"]["layer_5"], (shard["rows"], 128))
                for shard in index["shards"]
            }
            found = duckdb.sql(f"SELECT text, shard, row, rows, tokens FROM '{self.folder / name / 'index.parquet'}'").fetchall()
            self.assertEqual(len(found), 60)
            for text, shard, row, count, tokens in found:
                self.assertEqual(tokens, len(texts[text].token_ids))
                np.testing.assert_array_equal(mapped[shard][row : row + count], texts[text].layers[5])

    def test_a_hugging_face_data_set_has_texts_rows_and_labels(self) -> None:
        for name in ("all", "parts"):
            rows = tl.Rows(self.folder / name)
            texts = {text.index: text for text in rows}
            data = rows.to_datasets()
            self.assertIsInstance(data, datasets.IterableDataset)
            self.assertEqual(data.num_shards, len(rows._shards))
            examples = list(data.shuffle(seed=1, buffer_size=16).with_format("numpy"))
            self.assertEqual(sorted(int(example["text"]) for example in examples), list(range(60)))
            self.assertNotEqual([int(example["text"]) for example in examples], list(range(60)))
            for example in examples:
                text = int(example["text"])
                self.assertEqual((example["id"], example["label"], example["split"]), self.expected(text)[:3])
                np.testing.assert_array_equal(example["token_ids"], texts[text].token_ids)
                np.testing.assert_array_equal(example["layer_2"], texts[text].layers[2])


if __name__ == "__main__":
    unittest.main()
