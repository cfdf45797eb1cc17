"""Names of data sets and folders: paths on this machine, or URLs."""

from __future__ import annotations

import os
import re


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether fsspec reads it, rather than the file system."""
    return isinstance(path, str) and re.match(r"[a-z][a-z0-9+.-]+://", path) is not None


def place_of(path: str | os.PathLike[str]) -> str:
    """A URL as it is, or an absolute path."""
    return str(path) if is_url(path) else os.path.abspath(path)
