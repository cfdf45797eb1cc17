"""The helper process of `tapline extract` for what Node.js does not read or write itself: `python -m tapline_lab._remote`.

`texts PLACE` writes a data set to standard output: .jsonl, .ndjson and .txt as they are, everything else as one JSON object per line.
`folder URL` reads one request per line from standard input and answers each with one line. Errors are one sentence.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import json
import lzma
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from ._errors import TaplineError
from ._places import is_url

_FIELDS = ("text", "prompt", "id", "label", "split")
_BLOCK = 8 * 1024 * 1024
_ROWS = 1024
"""Rows of a table in memory."""
_LINES = (".jsonl", ".ndjson", ".txt")
_OPEN: dict[str, Callable[[BinaryIO], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_WAITS = (1, 2, 4, 8, 16, 32, 60)
"""Seconds between attempts to reach a folder: a connection that is lost for a minute loses nothing."""


def shown(place: str) -> str:
    """A place without the query of a URL, which may be secret."""
    return place.split("?")[0].rstrip("/") if is_url(place) else place.rstrip("/")


def remote(url: str) -> tuple[Any, str]:
    """fsspec's file system for a URL, and the path in it."""
    try:
        import fsspec
    except ImportError:
        raise _missing("URLs require fsspec") from None
    try:
        # Listings change while parts are written, also by other machines.
        found: tuple[Any, str] = fsspec.core.url_to_fs(url.rstrip("/"), use_listings_cache=False)
    except ImportError as error:
        raise _missing(f"{shown(url)} requires another package ({error})") from None
    return found


def _missing(what: str) -> TaplineError:
    return TaplineError(f"{what}: pip install 'tapline-lab[remote]'.")


class _Place:
    """A file or folder, local or at a URL."""

    def __init__(self, place: str) -> None:
        self.name = shown(place)
        self._files, self._path = remote(place) if is_url(place) else (None, self.name)

    def open(self, name: str = "") -> Any:
        path = f"{self._path}/{name}" if name else self._path
        return open(path, "rb") if self._files is None else self._files.open(path, "rb")

    def read(self, name: str) -> Any:
        """A JSON file; None if there is none."""
        try:
            with self.open(name) as file:
                return json.load(file)
        except (FileNotFoundError, NotADirectoryError):
            return None


def write_texts(place: str, out: Any) -> None:
    """Writes the texts of a data set to `out`, in the order of its files. Raises TaplineError."""
    source = _Place(place)
    name = source.name.lower()
    packed = next((end for end in _OPEN if name.endswith(end)), "")
    kind = os.path.splitext(name.removesuffix(packed))[1]

    def opened() -> Any:
        file = source.open()
        return _OPEN[packed](file) if packed else file

    if kind in _LINES:
        with opened() as file:
            while block := file.read(_BLOCK):
                out.write(block)
    elif kind == ".csv":
        with opened() as file:
            _write(_of_csv(file, source.name), out)
    elif kind == ".parquet" and not packed:
        with source.open() as file:
            _write(_of_parquet(file, source.name), out)
    else:
        _write(_of_saved(source), out)


def _write(entries: Iterator[dict[str, Any]], out: Any) -> None:
    for entry in entries:
        known = {name: entry[name] for name in _FIELDS if _is_plain(entry.get(name))}
        out.write(json.dumps(known, ensure_ascii=False).encode() + b"\n")


def _is_plain(value: Any) -> bool:
    """Whether JSON has it: a float that is missing in a table is not a number."""
    return isinstance(value, (str, int, float)) and value == value


def _columns(names: list[str], place: str) -> list[str]:
    if not {"text", "prompt"} & set(names):
        raise TaplineError(f"{place} has the columns {', '.join(names)}; text or prompt is required.")
    return [name for name in _FIELDS if name in names]


def _of_csv(file: Any, place: str) -> Iterator[dict[str, Any]]:
    import io

    csv.field_size_limit(16 * 1024 * 1024)
    rows = csv.DictReader(io.TextIOWrapper(file, "utf-8-sig", newline=""), strict=True)
    try:
        _columns(list(rows.fieldnames or []), place)
        for row in rows:
            # An empty cell is a missing value.
            yield {name: value for name, value in row.items() if value}
    except csv.Error as error:
        raise TaplineError(f"Line {rows.line_num} of {place} is not CSV: {error}.") from None


def _of_parquet(file: Any, place: str) -> Iterator[dict[str, Any]]:
    parquet = _arrow("parquet", place)
    table = parquet.ParquetFile(file)
    columns = _columns(table.schema_arrow.names, place)
    for batch in table.iter_batches(_ROWS, columns=columns):
        yield from batch.to_pylist()


def _of_saved(source: _Place) -> Iterator[dict[str, Any]]:
    """A folder of `Dataset.save_to_disk` or `DatasetDict.save_to_disk`: Arrow files in the stream format."""
    splits = (source.read("dataset_dict.json") or {}).get("splits")
    found = False
    for split in [None] if splits is None else splits:
        folder = "" if split is None else f"{split}/"
        state = source.read(f"{folder}state.json")
        if state is None:
            break
        found = True
        for entry in state["_data_files"]:
            with source.open(folder + entry["filename"]) as file:
                table = _arrow("ipc", source.name).open_stream(file)
                columns = _columns(table.schema.names, source.name)
                for batch in table:
                    for start in range(0, batch.num_rows, _ROWS):
                        for row in batch.select(columns).slice(start, _ROWS).to_pylist():
                            yield row if split is None else {"split": split, **row}
    if not found:
        known = ", ".join((*_LINES, ".csv"))
        raise TaplineError(
            f"{source.name} has an unknown format: its name must end in {known} (also with .gz, .bz2 or .xz) or .parquet, "
            "or it must be a folder of save_to_disk of the package datasets."
        )


def _arrow(module: str, place: str) -> Any:
    try:
        import importlib

        return importlib.import_module(f"pyarrow.{module}")
    except ImportError:
        raise _missing(f"{place} requires pyarrow") from None


class Folder:
    """A folder of output files at a URL. A file is there once it is uploaded and has been read back with the same checksum."""

    def __init__(self, url: str) -> None:
        self.name = url.rstrip("/")
        self._files, self._root = remote(url)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """`list`, `read` NAME, `write` NAME and text, or `put` NAME and a local path with its checksum."""
        actions: dict[str, Callable[..., dict[str, Any]]] = {
            "list": self._list,
            "read": self._read,
            "write": self._write,
            "put": self._put,
        }
        wanted = request.pop("do")
        for wait in (*_WAITS, None):
            try:
                return actions[wanted](**request)
            except TaplineError:
                raise
            except Exception as error:  # a file system raises whatever its client raises
                final = isinstance(error, (PermissionError, FileNotFoundError)) or type(error).__name__ == "NoCredentialsError"
                if final or wait is None:
                    raise TaplineError(f"{self.name} cannot be used: {_first_line(error)}.") from error
                time.sleep(wait)
        raise AssertionError

    def _list(self) -> dict[str, Any]:
        try:
            found = self._files.ls(self._root, detail=True, refresh=True)
        except FileNotFoundError:
            found = []
        return {"files": {str(entry["name"]).rsplit("/", 1)[-1]: entry["size"] for entry in found if entry["type"] == "file"}}

    def _read(self, name: str) -> dict[str, Any]:
        try:
            return {"text": self._files.cat_file(f"{self._root}/{name}").decode()}
        except FileNotFoundError:
            return {"text": None}

    def _write(self, name: str, text: str) -> dict[str, Any]:
        self._files.pipe_file(f"{self._root}/{name}", text.encode())
        return {}

    def _put(self, name: str, path: str, bytes: int, sha256: str) -> dict[str, Any]:
        place = f"{self._root}/{name}"
        self._files.put_file(path, place)
        size = self._files.info(place, refresh=True)["size"]
        if size != bytes:
            raise TaplineError(f"{self.name}/{name} has {size} bytes after its upload; the file has {bytes}.")
        content = hashlib.sha256()
        for start in range(0, bytes, _BLOCK):
            content.update(self._files.cat_file(place, start=start, end=min(start + _BLOCK, bytes)))
        if content.hexdigest() != sha256:
            raise TaplineError(
                f"{self.name}/{name} has the sha256 {content.hexdigest()} after its upload; the file has {sha256}."
            )
        return {}


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") if text else type(error).__name__


def main(words: list[str]) -> int:
    what, place = words
    try:
        if what == "texts":
            write_texts(place, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return 0
        folder = Folder(place)
        for line in sys.stdin:
            try:
                answer = folder.answer(json.loads(line))
            except TaplineError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)
        return 0
    except BrokenPipeError:
        os._exit(0)  # the reader has enough
    except TaplineError as error:
        print(error, file=sys.stderr)
    except UnicodeDecodeError:
        print(f"{shown(place)} is not UTF-8.", file=sys.stderr)
    except FileNotFoundError:
        print(f"{shown(place)} does not exist.", file=sys.stderr)
    except Exception as error:  # a file system raises whatever its client raises
        print(f"{shown(place)} cannot be read: {_first_line(error)}.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
