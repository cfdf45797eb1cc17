from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from typing import Any, Protocol, TextIO


class ProgressDisplay(Protocol):
    """Shows a job's progress."""

    def show(self, job: Mapping[str, Any], seconds: float) -> None: ...
    def clear(self) -> None: ...


def progress_display() -> ProgressDisplay:
    """A line below the cell in a notebook, else on standard error if that is a terminal."""
    notebook = _notebook()
    if notebook is None:
        return ProgressLine()
    return NotebookProgress(notebook)


def _notebook() -> Any:
    """Returns IPython's display module if this program runs in a notebook, without importing it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # Only a kernel's shell has a front end; a terminal's has none.
    return None if getattr(shell, "kernel", None) is None else sys.modules.get("IPython.display")


class NotebookProgress:
    """One output of the cell, updated during the job and cleared at the end."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._id = f"tapline-{secrets.token_hex(6)}"
        self._shown = ""

    def show(self, job: Mapping[str, Any], seconds: float) -> None:
        self._put(_text(job, seconds))

    def clear(self) -> None:
        if self._shown:
            self._put("")

    def _put(self, text: str) -> None:
        self._display.display({"text/plain": text}, raw=True, display_id=self._id, update=bool(self._shown))
        self._shown = text


class ProgressLine:
    """A progress line on standard error if that is a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream is not None and self._stream.isatty()
        self._shown = 0

    def show(self, job: Mapping[str, Any], seconds: float) -> None:
        if self._terminal:
            self._write(_text(job, seconds)[: self._columns() - 1])

    def clear(self) -> None:
        if self._shown > 0:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        # Erase with spaces, which work on every terminal.
        self._stream.write("\r" + text + " " * (self._shown - len(text)))
        self._stream.flush()
        self._shown = len(text)

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


def _text(job: Mapping[str, Any], seconds: float) -> str:
    progress = job.get("progress") or {}
    stage, done, total = (progress.get(name) for name in ("stage", "done", "total"))
    doing = f": {stage} {done:g}/{total:g}" if stage and total else f": {stage}" if stage else ""
    text = f"{job['operation']} {str(job['id'])[:8]} {job['status']}{doing} ({seconds:.0f} s)"
    return "".join(character if character.isprintable() else "?" for character in text)
