"""The files of an extraction, in a local folder or at a URL: indices, and shards as mapped arrays."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ._errors import TaplineError
from ._places import is_url

try:
    import numpy as np
except ImportError:
    raise TaplineError("Extractions require NumPy, which is not installed: pip install numpy.") from None

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

_FORMAT = "tapline extraction 1"
_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I32": "<i4"}
_INDEX = re.compile(r"index(-\d+-of-\d+)?\.json")


class LocalFolder:
    """An extraction's folder on this machine."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = str(path)
        self._path = Path(path)

    def indices(self) -> list[str]:
        """The names of its index files."""
        if not self._path.is_dir():
            return []
        return sorted(entry.name for entry in self._path.iterdir() if _INDEX.fullmatch(entry.name))

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def local(self, name: str, size: int | None = None) -> Path:
        """A file's path."""
        return self._path / name


class RemoteFolder:
    """An extraction's folder at a URL; a file is downloaded when its content is first used, and kept in a cache."""

    def __init__(self, url: str, cache: str | os.PathLike[str] | None, options: dict[str, Any] | None) -> None:
        try:
            import fsspec
        except ImportError:
            raise TaplineError("URLs require fsspec: pip install 'tapline-lab[remote]'.") from None
        self.name = url.rstrip("/")
        try:
            self._files, self._root = fsspec.core.url_to_fs(self.name, **(options or {}))
        except (ImportError, ValueError) as error:
            raise TaplineError(f"{self.name} cannot be opened: {error}.") from error
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self._cache = Path(cache) if cache is not None else Path(home) / "tapline" / "rows"

    def indices(self) -> list[str]:
        """The names of its index files: those that the server lists, or `index.json` if it lists nothing."""
        try:
            names = [str(path).rsplit("/", 1)[-1] for path in self._files.ls(self._root, detail=False)]
        except (OSError, NotImplementedError):
            names = []
        found = sorted(name for name in names if _INDEX.fullmatch(name))
        return found or (["index.json"] if self._files.exists(f"{self._root}/index.json") else [])

    def read(self, name: str) -> bytes:
        content: bytes = self._files.cat_file(f"{self._root}/{name}")
        return content

    def pin(self, indices: list[bytes]) -> None:
        """Files of another extraction that was at the same URL are not taken for files of this one."""
        content = hashlib.sha256(self.name.encode())
        for index in indices:
            content.update(index)
        self._cache = self._cache / content.hexdigest()[:16]

    def local(self, name: str, size: int | None = None) -> Path:
        """The path of a file's copy on this machine."""
        path = self._cache / name
        if path.exists():
            return path
        self._cache.mkdir(parents=True, exist_ok=True)
        partial = self._cache / f"{name}.{os.getpid()}.partial"
        try:
            self._files.get_file(f"{self._root}/{name}", str(partial))
            if size is not None and partial.stat().st_size != size:
                found = partial.stat().st_size
                raise TaplineError(f"{self.name}/{name} has {found} bytes; its index says {size}.")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return path


Folder: TypeAlias = "LocalFolder | RemoteFolder"


def open_folder(
    path: str | os.PathLike[str], cache: str | os.PathLike[str] | None, options: dict[str, Any] | None
) -> tuple[Folder, list[dict[str, Any]]]:
    """The folder of an extraction, and the contents of its indices. Raises TaplineError if it is not one, or is incomplete."""
    folder: Folder = RemoteFolder(str(path), cache, options) if is_url(path) else LocalFolder(path)
    names = folder.indices()
    if not names:
        raise TaplineError(f"{folder.name} has no index.json: it is not the folder of an extraction.")
    contents = [folder.read(name) for name in names]
    if isinstance(folder, RemoteFolder):
        folder.pin(contents)
    return folder, [_index(folder, name, content) for name, content in zip(names, contents)]


def _index(folder: Folder, name: str, content: bytes) -> dict[str, Any]:
    try:
        index = json.loads(content)
        known = index["format"] == _FORMAT
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise TaplineError(f"{folder.name}/{name} is not the index of an extraction ({_FORMAT}).")
    if not index["complete"]:
        raise TaplineError(f"The extraction in {folder.name} is incomplete; run the same command again to finish it.")
    found: dict[str, Any] = index
    return found


class Shard:
    """One file of an extraction, opened when its content is first used."""

    def __init__(self, folder: Folder, entry: dict[str, Any]) -> None:
        self._folder = folder
        self.name = str(entry["file"])
        self.rows, self.texts, self.tokens = (int(entry[name]) for name in ("rows", "texts", "tokens"))
        self._bytes = entry.get("bytes")
        self._tensors: dict[str, tuple[Array, str]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tensors": None}  # other processes map the file themselves

    def __getitem__(self, name: str) -> tuple[Array, str]:
        """A tensor, mapped, with its type."""
        if self._tensors is None:
            self._tensors = tensors_of(self._folder.local(self.name, self._bytes))
        return self._tensors[name]

    def floats(self, layer: int, rows: Any) -> Array:
        """float32 [rows, hidden]: some rows of a layer. `rows` is a slice or indices."""
        values, kind = self[f"layer_{layer}"]
        if kind == "BF16":
            return (values[rows].astype(np.uint32) << 16).view(np.float32)
        return np.asarray(values[rows], np.float32)


def tensors_of(path: Path) -> dict[str, tuple[Array, str]]:
    """The tensors of a safetensors file, mapped, with their types. BF16 has the type uint16."""
    try:
        content = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise TaplineError(f"{path} cannot be read: {error}.") from error
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:start].tobytes())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _TYPES:
            raise TaplineError(f"{name} in {path} has the type {entry['dtype']}; known are {', '.join(_TYPES)}.")
        begin, end = entry["data_offsets"]
        if start + end > len(content):
            raise TaplineError(f"{path} ends after {len(content)} bytes; its header names {start + end}.")
        raw = np.asarray(content[start + begin : start + end])
        tensors[name] = raw.view(_TYPES[entry["dtype"]]).reshape(entry["shape"]), entry["dtype"]
    return tensors
