"""Extractions on a local Ray cluster, whose workers are killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import ray
import tapline_lab as tl
from support import contents, wait_for
from tapline_lab.ray import Extractor, submit

TEXTS = [f"The capital of country {n} is" + " very" * (n % 5) for n in range(96)]


class TestRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.lab = tl.Lab(os.environ["TAPLINE_TEST_LAB"])
        ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False)
        cls.addClassCleanup(ray.shutdown)

    def one_machine(self, name: str, data: Path, **settings: object) -> Path:
        out = self.folder / name
        self.lab.wait(self.lab.extract("demo", data, out, layers=[2, 5], **settings))
        return out

    def test_batches_become_files_with_the_models_rows(self) -> None:
        data = self.folder / "texts.txt"
        data.write_text("\n".join(TEXTS))
        expected = {text.index: text for text in tl.Rows(self.one_machine("expected", data, rows="all"))}
        texts = ray.data.from_items([{"number": n, "text": text} for n, text in enumerate(TEXTS)], override_num_blocks=6)
        for rows in ("all", "last"):
            out = self.folder / f"batches-{rows}"
            settings = {"model": "demo", "layers": [2, 5], "out": str(out), "rows": rows}
            found = texts.map_batches(Extractor, fn_constructor_kwargs=settings, batch_size=16, concurrency=2, num_cpus=1).take_all()
            self.assertEqual(sorted(row["number"] for row in found), list(range(len(TEXTS))))
            self.assertEqual(sum(path.suffix == ".safetensors" for path in out.iterdir()), 6)
            self.assertEqual({path.name for path in out.iterdir()}, {row["shard"] for row in found})
            for row in found:
                own = expected[row["number"]]
                shard = _tensors(out / row["shard"])
                self.assertEqual(row["tokens"], len(own.token_ids))
                for layer in (2, 5):
                    read = shard[f"layer_{layer}"][row["row"] : row["row"] + row["rows"]]
                    whole = own.layers[layer] if rows == "all" else own.layers[layer][-1:]
                    self.assertLess(np.linalg.norm(read - whole), 5e-3 * np.linalg.norm(whole))
                digest = subprocess.run(["sha256sum", str(out / row["shard"])], capture_output=True, text=True, check=True)
                self.assertEqual(row["sha256"], digest.stdout.split()[0])

    def test_killed_workers_lose_and_repeat_no_part(self) -> None:
        data = self.folder / "many.txt"
        data.write_text("\n".join(f"{text}, number {n}" for n in range(80) for text in TEXTS))
        settings = {"rows": "all", "shard_tokens": 1024}
        whole = self.one_machine("whole", data, **settings)
        out = self.folder / "submitted"
        submitted = submit(data, out, model="demo", layers=[2, 5], parts=3, **settings)
        pieces = out / "parts"
        killed: list[int] = []

        def kill(part: int) -> None:
            # After the part's first finished file, the worker that computes it dies without notice.
            wait_for(f"a file of part {part}", lambda: list(pieces.glob(f"shard-{part}-of-3-*.safetensors")))
            worker = _worker_of(f"{part}/3")
            if worker is not None:
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)

        killers = [threading.Thread(target=kill, args=(part,)) for part in (0, 1)]
        for killer in killers:
            killer.start()
        files = submitted.result()
        for killer in killers:
            killer.join()
        self.assertEqual(len(killed), 2)
        self.assertEqual(contents(out), contents(whole))
        self.assertEqual({entry["file"] for entry in files}, set(contents(whole)))

    def test_a_second_submission_joins_the_first_and_repeats_no_part(self) -> None:
        data = self.folder / "joined.txt"
        data.write_text("\n".join(f"{text}, number {n}" for n in range(40) for text in TEXTS))
        settings = {"rows": "all", "shard_tokens": 1024}
        whole = self.one_machine("joined-whole", data, **settings)
        out = self.folder / "joined"
        words = {"model": "demo", "layers": [2, 5], **settings}
        first = submit(data, out, parts=4, **words)
        pieces = out / "parts"
        wait_for("a finished part", lambda: first.done() > 0)
        # Two places, so another part is being computed; the second submission waits for it.
        second = submit(data, out, parts=4, **words)
        ray.get(second.tasks)
        written = {path.name: path.stat().st_mtime_ns for path in pieces.glob("shard-*")}
        third = submit(data, out, parts=4, **words)
        ray.get(third.tasks)
        self.assertEqual({path.name: path.stat().st_mtime_ns for path in pieces.glob("shard-*")}, written)
        with self.assertRaisesRegex(tl.TaplineError, r"joined has an extraction in 4 parts, got parts=3\.$"):
            submit(data, out, parts=3, **words)
        with self.assertRaisesRegex(tl.TaplineError, r"joined has parts of an extraction with other settings\."):
            submit(data, out, parts=4, **{**words, "layers": [2]})
        files = second.result()
        self.assertEqual(first.result(), files)
        self.assertEqual(contents(out), contents(whole))

        merged = {path.name: path.stat().st_mtime_ns for path in out.glob("shard-*")}
        again = submit(data, out, parts=4, **words)
        self.assertTrue(again.merged)
        self.assertEqual(again.result(), files)
        self.assertEqual({path.name: path.stat().st_mtime_ns for path in out.glob("shard-*")}, merged)
        self.assertEqual(contents(out), contents(whole))
        with self.assertRaisesRegex(tl.TaplineError, "contains a different extraction"):
            submit(data, out, parts=4, **{**words, "layers": [2]}).result()

    def test_a_part_that_cannot_run_says_why(self) -> None:
        data = self.folder / "broken.jsonl"
        data.write_text(json.dumps({"text": "fine"}) + "\nnot JSON\n")
        submitted = submit(data, self.folder / "broken", model="demo", layers=[2], parts=2)
        with self.assertRaisesRegex(tl.TaplineError, r"Part \d of 2 failed: .*Line 2 of broken.jsonl is not JSON"):
            submitted.result()


def _worker_of(part: str) -> int | None:
    """The Ray worker whose command computes a part."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if b"extract" in words and part.encode() in words:
                return parent
        except OSError:
            continue
    return None


def _tensors(path: Path) -> dict[str, np.ndarray]:
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    return {
        name: np.frombuffer(content[start:][slice(*entry["data_offsets"])], {"F32": "<f4", "I32": "<i4"}[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


if __name__ == "__main__":
    unittest.main()
