"""Data sets in tables and at URLs, and extractions whose files go to S3 (moto's server)."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import s3fs
from s3 import start_s3

ENTRIES = [
    {"id": f"t{n}", "text": f"The capital of country {n} is" + " very" * (n % 5), "label": n % 2, "split": ("train", "test")[n % 3 == 0]}
    for n in range(60)
]
SETTINGS = ["--layers", "2", "--shard-tokens", "256", "--lab", "new", "--quiet", "--json"]


class TestData(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.data = cls.folder / "texts.jsonl"
        cls.data.write_text("".join(json.dumps(entry) + "\n" for entry in ENTRIES))
        table = pyarrow.Table.from_pylist([{**entry, "other": [1.0]} for entry in ENTRIES])
        pyarrow.parquet.write_table(table, cls.folder / "texts.parquet", row_group_size=7)
        whole = datasets.Dataset.from_list(ENTRIES)
        whole.save_to_disk(str(cls.folder / "saved"), num_shards=3)
        splits = datasets.DatasetDict({"test": whole.select(range(20)).remove_columns("split"), "train": whole.select(range(20, 60))})
        splits.save_to_disk(str(cls.folder / "splits"))
        cls.endpoint = start_s3(cls)
        cls.s3 = s3fs.S3FileSystem(key="k", secret="s", client_kwargs={"endpoint_url": cls.endpoint}, use_listings_cache=False)
        cls.s3.mkdir("bucket")
        for name in ("texts.jsonl", "texts.parquet"):
            cls.s3.put_file(str(cls.folder / name), f"bucket/{name}")
        cls.s3.put(str(cls.folder / "saved"), "bucket/saved", recursive=True)
        cls.whole = cls.folder / "whole"
        cls.extract(str(cls.data), str(cls.whole))

    @classmethod
    def extract(cls, data: str, out: str, *more: str, fails: bool = False, endpoint: str = "") -> str:
        words = [*os.environ["TAPLINE_COMMAND"].split(), "extract", "--data", data, "--out", out, *SETTINGS, *more]
        # Checksums in trailers are a different encoding of the body, which the proxy below does not read.
        own = {
            "TAPLINE_PYTHON": sys.executable,
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_ENDPOINT_URL": endpoint or cls.endpoint,
            "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        }
        ended = subprocess.run(words, env={**os.environ, **own}, capture_output=True, text=True, check=False)
        if (ended.returncode != 0) is not fails:
            raise AssertionError(ended.stderr[-3000:] + ended.stdout[-300:])
        return ended.stderr if fails else ended.stdout

    def rows(self, folder: Path) -> dict[str, bytes]:
        """The shards and the table: everything but the index, which names the data set."""
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"}

    def stored(self, name: str) -> dict[str, bytes]:
        return {path.rsplit("/", 1)[-1]: self.s3.cat_file(path) for path in self.s3.ls(f"bucket/{name}", detail=False)}

    def test_tables_and_saved_data_sets_give_the_files_of_the_same_json_lines(self) -> None:
        for name in ("texts.parquet", "saved"):
            out = self.folder / f"from-{name}"
            self.extract(str(self.folder / name), str(out))
            self.assertEqual(self.rows(out), self.rows(self.whole), name)

    def test_the_splits_of_a_saved_dictionary_are_read_one_after_another(self) -> None:
        out = self.folder / "from-splits"
        self.extract(str(self.folder / "splits"), str(out))
        table = pyarrow.parquet.read_table(out / "index.parquet").to_pylist()
        self.assertEqual([row["id"] for row in table], [entry["id"] for entry in ENTRIES])
        expected = ["test"] * 20 + [entry["split"] for entry in ENTRIES[20:]]
        self.assertEqual([row["split"] for row in table], expected)

    def test_data_at_urls_gives_the_files_of_local_data(self) -> None:
        with served(self.folder) as url:
            for place in ("s3://bucket/texts.jsonl", "s3://bucket/texts.parquet", "s3://bucket/saved", f"{url}/texts.jsonl?token=secret"):
                out = self.folder / ("url-" + hashlib.sha256(place.encode()).hexdigest()[:8])
                self.extract(place, str(out))
                self.assertEqual(self.rows(out), self.rows(self.whole), place)
                index = (out / "index.json").read_text()
                self.assertNotIn("secret", index)
                if place.endswith(".jsonl"):
                    self.assertEqual(index, (self.whole / "index.json").read_text(), "the same texts under the same name")

    def test_what_cannot_be_read_is_one_sentence(self) -> None:
        for place, sentence in (
            ("s3://bucket/absent.jsonl", "s3://bucket/absent.jsonl does not exist."),
            ("gs://bucket/texts.jsonl", "pip install 'tapline-lab[remote]'"),
        ):
            self.assertIn(sentence, self.extract(place, str(self.folder / "none"), fails=True))

    def test_files_in_s3_are_those_of_a_local_run_and_are_listed_with_checksums(self) -> None:
        self.extract(str(self.data), "s3://bucket/out/")
        found = self.stored("out")
        sums = dict(reversed(line.split("  ")) for line in found.pop("index.sha256").decode().splitlines())
        self.assertEqual(found, {path.name: path.read_bytes() for path in self.whole.iterdir()})
        self.assertEqual(sums, {name: hashlib.sha256(content).hexdigest() for name, content in found.items() if name != "index.json"})

    def test_an_interrupted_upload_resumes_after_the_files_that_are_there(self) -> None:
        self.extract(str(self.data), "s3://bucket/resumed")
        whole = self.stored("resumed")
        shards = sorted(name for name in whole if name.endswith(".safetensors"))
        self.assertGreater(len(shards), 2)
        index = json.loads(whole["index.json"])
        # As after a stop: the second file was never uploaded, the third one only in part.
        self.s3.pipe_file("bucket/resumed/index.json", json.dumps({**index, "complete": False}).encode())
        self.s3.rm_file("bucket/resumed/index.parquet")
        self.s3.rm_file(f"bucket/resumed/{shards[1]}")
        self.s3.pipe_file(f"bucket/resumed/{shards[2]}", whole[shards[2]][:-1])
        result = json.loads(self.extract(str(self.data), "s3://bucket/resumed"))["job"]["result"]
        self.assertEqual(result["kept_files"], len(shards) - 2)
        again = self.stored("resumed")
        self.assertEqual(sorted(again.pop("index.sha256").splitlines()), sorted(whole.pop("index.sha256").splitlines()))
        self.assertEqual(again, whole)

    def test_a_bucket_with_another_extraction_or_none_is_refused(self) -> None:
        self.extract(str(self.data), "s3://bucket/other")
        said = self.extract(str(self.data), "s3://bucket/other", "--rows", "last", fails=True)
        self.assertIn('s3://bucket/other contains a different extraction: rows is "all" there and "last" here.', said)
        self.assertIn("s3://no-such-bucket/x cannot be used: ", self.extract(str(self.data), "s3://no-such-bucket/x", fails=True))

    def test_an_upload_that_arrives_changed_is_refused(self) -> None:
        with changing(self.endpoint) as endpoint:
            said = self.extract(str(self.data), "s3://bucket/changed", fails=True, endpoint=endpoint)
        self.assertRegex(said, r"s3://bucket/changed/shard-00000.safetensors has the sha256 \w{64} after its upload; the file has \w{64}\.")
        self.assertNotIn("index.sha256", self.stored("changed"))


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with running(functools.partial(Quiet, directory=str(folder))) as url:
        yield url


@contextlib.contextmanager
def changing(endpoint: str) -> Iterator[str]:
    """A proxy of an S3 server that changes one byte of each shard on its way up."""
    import urllib.error
    import urllib.request

    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")}
            if self.command == "PUT" and ".safetensors" in self.path:
                body = body[:-1] + bytes([body[-1] ^ 1])
                headers = {name: value for name, value in headers.items() if "checksum" not in name.lower() and name.lower() != "content-md5"}
            headers.setdefault("Content-Type", "application/octet-stream")
            request = urllib.request.Request(endpoint + self.path, body or None, headers, method=self.command)
            try:
                response = urllib.request.urlopen(request, timeout=30)
            except urllib.error.HTTPError as error:
                response = error
            content = response.read()
            self.send_response(response.status)
            for name, value in response.headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            length = response.headers.get("content-length") if self.command == "HEAD" else str(len(content))
            self.send_header("content-length", length or "0")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    with running(Proxy) as url:
        yield url


@contextlib.contextmanager
def running(handler: object) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


if __name__ == "__main__":
    unittest.main()
