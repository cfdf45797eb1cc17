"""An extraction on a Ray cluster of three nodes, one of which is lost in the middle."""

from __future__ import annotations

import os
import signal
import tempfile
import unittest
from pathlib import Path

import ray
import tapline_lab as tl
from ray.cluster_utils import Cluster
from support import contents, wait_for
from tapline_lab.ray import submit


class TestNodes(unittest.TestCase):
    def test_a_lost_node_loses_and_repeats_no_text(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        data = Path(folder.name, "texts.txt")
        data.write_text("\n".join(f"The capital of country {n} is{' very' * (n % 5)}" for n in range(6000)))
        settings = {"rows": "all", "shard_tokens": 1024}
        whole = Path(folder.name, "whole")
        lab = tl.Lab(os.environ["TAPLINE_TEST_LAB"])
        lab.wait(lab.extract("demo", data, whole, layers=[2, 5], **settings))

        # The first node has no processor for parts, only this program.
        memory = {"object_store_memory": 100_000_000}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **memory})
        self.addCleanup(cluster.shutdown)
        nodes = [cluster.add_node(num_cpus=1, **memory) for _ in range(2)]
        ray.init(cluster.address, log_to_driver=False)
        self.addCleanup(ray.shutdown)
        out = Path(folder.name, "rows")
        submitted = submit(data, out, model="demo", layers=[2, 5], parts=4, **settings)
        pieces = out / "parts"

        lost, part, processes = wait_for("two files of a part", lambda: _working(nodes, pieces))
        kept = {path.name: path.stat().st_mtime_ns for path in pieces.glob(f"shard-{part}-of-4-*.safetensors")}
        for process in processes:  # everything on the node at once, as when its power fails
            _kill(process)
        cluster.remove_node(lost, allow_graceful=False)
        ray.get(submitted.tasks)
        self.assertGreaterEqual(len(kept), 2)
        self.assertEqual({name: (pieces / name).stat().st_mtime_ns for name in kept}, kept)
        submitted.result()
        self.assertEqual(contents(out), contents(whole))
        # Ray notices the loss by missing heartbeats, after the work may be done.
        wait_for("the lost node", lambda: len([node for node in ray.nodes() if node["Alive"]]) == 2)


def _working(nodes: list[object], pieces: Path) -> tuple[object, int, list[int]] | None:
    """A node whose part has two files and is not complete, the part, and all processes of the node."""
    for node in nodes:
        raylet = node.all_processes["raylet"][0].process.pid
        tree = _tree(raylet)
        for process in tree:
            words = _words(process)
            if b"extract" not in words:
                continue
            part = int(words[words.index(b"--shard") + 1].split(b"/")[0])
            if len(list(pieces.glob(f"shard-{part}-of-4-*.safetensors"))) >= 2:
                return node, part, tree
    return None


def _words(process: int) -> list[bytes]:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _tree(root: int) -> list[int]:
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(process.name)] = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    tree = [root]
    for process in tree:
        tree += [child for child, parent in parents.items() if parent == process]
    return tree


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    unittest.main()
