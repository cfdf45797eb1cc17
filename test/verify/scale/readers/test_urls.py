"""Extractions at URLs: in S3 (moto's server) and behind a plain HTTP server."""

from __future__ import annotations

import functools
import http.server
import json
import os
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import s3fs
import tapline_lab as tl
from s3 import start_s3

TEXTS = [f"The capital of country {n} is" for n in range(60)]


class TestUrls(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        (cls.folder / "texts.txt").write_text("\n".join(TEXTS))
        lab = tl.Lab(os.environ["TAPLINE_TEST_LAB"])
        data = cls.folder / "texts.txt"
        lab.wait(lab.extract("demo", data, cls.folder / "whole", layers=[2], rows="all", shard_tokens=256))
        for part in range(2):
            lab.wait(lab.extract("demo", data, cls.folder / "parts", layers=[2], rows="all", shard_tokens=256, shard=[part, 2]))
        cls.options = {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": start_s3(cls)}}
        cls.s3 = s3fs.S3FileSystem(**cls.options)
        cls.s3.mkdir("rows")
        for name in ("whole", "parts"):
            cls.s3.put(str(cls.folder / name), f"rows/{name}", recursive=True)

    def test_rows_in_s3_are_those_of_the_files(self) -> None:
        whole = tl.Rows(self.folder / "whole")
        for name in ("whole", "parts"):
            cache = self.folder / f"cache-{name}"
            rows = tl.Rows(f"s3://rows/{name}", cache=cache, storage_options=self.options)
            self.assertEqual(len(rows), 60)
            self.assertFalse(cache.exists(), "nothing is downloaded before it is read")
            first = rows[2][0]
            self.assertEqual(len(list(cache.glob("*/*"))), 1)
            np.testing.assert_array_equal(first, whole[2][0])
            texts = {text.index: text for text in rows}
            for text in whole:
                np.testing.assert_array_equal(texts[text.index].layers[2], text.layers[2])
            examples = list(rows.to_datasets().with_format("numpy"))
            self.assertEqual(sorted(int(example["text"]) for example in examples), list(range(60)))

    def test_a_replaced_extraction_is_not_read_from_the_cache(self) -> None:
        cache = self.folder / "cache-replaced"
        self.s3.put(str(self.folder / "whole"), "rows/replaced", recursive=True)
        before = np.asarray(tl.Rows("s3://rows/replaced", cache=cache, storage_options=self.options)[2])
        data = self.folder / "other.txt"
        data.write_text("\n".join(reversed(TEXTS)))
        lab = tl.Lab(os.environ["TAPLINE_TEST_LAB"])
        lab.wait(lab.extract("demo", data, self.folder / "other", layers=[2], rows="all", shard_tokens=256))
        self.s3.put(str(self.folder / "other") + "/", "rows/replaced/", recursive=True)
        after = np.asarray(tl.Rows("s3://rows/replaced", cache=cache, storage_options=self.options)[2])
        np.testing.assert_array_equal(after, np.asarray(tl.Rows(self.folder / "other")[2]))
        self.assertFalse(np.array_equal(before, after))

    def test_a_truncated_file_is_refused(self) -> None:
        self.s3.put(str(self.folder / "whole"), "rows/short", recursive=True)
        name = json.loads((self.folder / "whole" / "index.json").read_text())["shards"][0]["file"]
        self.s3.pipe_file(f"rows/short/{name}", (self.folder / "whole" / name).read_bytes()[:-5])
        rows = tl.Rows("s3://rows/short", cache=self.folder / "cache-short", storage_options=self.options)
        with self.assertRaisesRegex(tl.TaplineError, r"short/shard-00000.safetensors has \d+ bytes; its index says \d+\."):
            rows[2][0]
        self.assertEqual([path for path in (self.folder / "cache-short").rglob("*") if path.is_file()], [])

    def test_a_plain_http_server_serves_an_extraction(self) -> None:
        handler = functools.partial(Quiet, directory=str(self.folder / "whole"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        rows = tl.Rows(f"http://127.0.0.1:{server.server_port}", cache=self.folder / "cache-http")
        np.testing.assert_array_equal(np.asarray(rows[2]), np.asarray(tl.Rows(self.folder / "whole")[2]))
        with self.assertRaisesRegex(tl.TaplineError, "has no index.json"):
            tl.Rows(f"http://127.0.0.1:{server.server_port}/nothing")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    unittest.main()
