"""Extractions on a Ray cluster: `Extractor` for `ray.data.Dataset.map_batches`, and `submit` for a data set in files.

Activations never pass through Ray's object store: workers write files to a folder that all nodes see, and only paths and checksums
return. Requires Ray and NumPy (`tapline-lab[ray]`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._command import command
from ._errors import TaplineError
from ._model import load
from ._places import place_of

try:
    import numpy as np
    import ray
except ImportError as error:
    raise TaplineError(f"tapline_lab.ray requires {error.name}: pip install 'tapline-lab[ray]'.") from None

from ._row_files import tensors_of  # after the check for NumPy, which it requires

__all__ = ["Extractor", "Parts", "submit"]

_ATTEMPTS = 3
"""How often a part is started without finishing one more file before it fails."""
_TEXTS = 64
"""Most texts per forward call."""
_LOCKED = "has been writing this extraction"
"""In the message of a process that finds another one at its part."""
_INDEX = re.compile(r"index-\d+-of-(\d+)\.json")


class Extractor:
    """Writes the activations of a data set's texts to files: a class for `map_batches`, with one server per actor.

        texts.map_batches(
            Extractor,
            fn_constructor_kwargs={"model": "/shared/model.gguf", "layers": [5], "out": "/shared/rows"},
            batch_size=256, concurrency=4, num_gpus=1,
        )

    A batch becomes one safetensors file with the tensors of an extraction's shard: `layer_5` and so on [rows, hidden], `token_ids`
    and `text_starts`. Each text gets its place: the columns `shard` (a file name in `out`), `row`, `rows`, `tokens`, and `sha256`, the
    checksum of the file. The file's name is a hash of its texts and settings, so a batch that Ray repeats, after a lost node
    or on a second one, gives the same file again.

    `model` and `options` are those of `load`, and the model's path is the same on all nodes. `rows`: "all" tokens or the "last" one.
    The server ends with its actor, also when that is killed.
    """

    def __init__(
        self,
        model: str,
        layers: Sequence[int],
        out: str | os.PathLike[str],
        *,
        point: str = "block_out",
        rows: str = "all",
        column: str = "text",
        options: Sequence[str] = (),
    ) -> None:
        if rows not in ("all", "last"):
            raise TaplineError(f'rows is "all" or "last", got {rows!r}.')
        self._out = Path(out)
        self._out.mkdir(parents=True, exist_ok=True)
        self._layers = [int(layer) for layer in layers]
        self._point, self._rows, self._column = point, rows, column
        self._settings = [model, self._layers, point, rows, list(options)]
        self._model = load(model, *options, quiet=True)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        texts = [str(text) for text in batch[self._column]]
        name = hashlib.sha256(json.dumps([self._settings, texts]).encode()).hexdigest()[:32] + ".safetensors"
        path = self._out / name
        if not path.exists():
            _write(path, self._tensors(texts), self._rows)
        starts, _ = tensors_of(path)["text_starts"]
        tokens = np.diff(starts)
        per_token = self._rows == "all"
        return {
            **batch,
            "shard": np.array([name] * len(texts)),
            "row": starts[:-1] if per_token else np.arange(len(texts), dtype=np.int32),
            "rows": tokens if per_token else np.ones(len(texts), np.int32),
            "tokens": tokens,
            "sha256": np.array([_sha256(path)] * len(texts)),
        }

    def _tensors(self, texts: list[str]) -> dict[str, Any]:
        tokens: list[Any] = []
        layers: dict[int, list[Any]] = {layer: [] for layer in self._layers}
        for begin in range(0, len(texts), _TEXTS):
            run = self._model.run(
                texts[begin : begin + _TEXTS],
                [f"{self._point}.{layer}" for layer in self._layers],
                positions=[-1] if self._rows == "last" else None,
            )
            tokens += run.tokens
            for layer, found in layers.items():
                found += [np.asarray(rows, np.float32) for rows in run.cache[f"{self._point}.{layer}"]]
        return {
            **{f"layer_{layer}": np.concatenate(found) for layer, found in layers.items()},
            "text_starts": np.cumsum([0, *map(len, tokens)]).astype(np.int32),
            "token_ids": np.concatenate(tokens).astype(np.int32),
        }


def submit(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    model: str,
    layers: Sequence[int],
    parts: int,
    num_cpus: float = 1,
    num_gpus: float = 0,
    resources: dict[str, float] | None = None,
    **settings: Any,
) -> Parts:
    """Starts an extraction in parts, each a Ray task that runs `tapline extract --shard`; `result()` waits and merges.

    `data`, `out`, the model and tapline are on a file system that all nodes see. `settings` are those of `Lab.extract`, such as
    `rows` and `dtype`. A part whose node is lost starts again on another one and resumes after its finished files. The same call
    resumes a submission that was cancelled, or whose driver ended, and joins one that is running: finished parts are not computed
    again, and a part that another driver's task is computing is waited for. After the merge, it finds all files and computes nothing.
    The merged files are those of one machine, byte for byte.

    Raises TaplineError if `out` has parts of another division.
    """
    folder = Path(out).absolute()
    pieces = folder / "parts"
    pieces.mkdir(parents=True, exist_ok=True)
    divisions = {int(match.group(1)) for path in pieces.iterdir() if (match := _INDEX.fullmatch(path.name))}
    if divisions - {parts}:
        raise TaplineError(f"{folder} has an extraction in {min(divisions - {parts})} parts, got parts={parts}.")
    name = model if model == "demo" or not Path(model).exists() else str(Path(model).absolute())
    wanted = {"model": name, "layers": list(layers), "data": place_of(data), **settings}
    config = pieces / "extract.json"
    text = json.dumps(wanted)
    if divisions and config.exists() and json.loads(config.read_text()) != json.loads(text):
        raise TaplineError(f"{folder} has parts of an extraction with other settings. Choose another folder.")
    partial = config.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(text)
    partial.replace(config)
    # Ray repeats a task whose worker or node is lost without a limit; a part that fails by itself is repeated in the task.
    task = ray.remote(_extract).options(num_cpus=num_cpus, num_gpus=num_gpus, resources=resources, max_retries=-1)
    if (folder / "index.json").exists() and not divisions:
        # Merged: one task finds that every file is there, or refuses a folder of another extraction.
        return Parts(folder, [task.remote(str(config), str(folder), 0, 1)], merged=True)
    return Parts(folder, [task.remote(str(config), str(pieces), part, parts) for part in range(parts)])


class Parts:
    """A submitted extraction."""

    def __init__(self, out: Path, tasks: list[Any], *, merged: bool = False) -> None:
        self.out = out
        self.merged = merged
        """Whether its files were merged before."""
        self.tasks = tasks
        """A Ray object reference per part; its value is a list of the part's files with their checksums."""

    def done(self) -> int:
        """The number of finished parts."""
        return len(ray.wait(self.tasks, num_returns=len(self.tasks), timeout=0)[0])

    def result(self) -> list[dict[str, Any]]:
        """Waits for all parts and merges their files in `out`. Returns the name, size and sha256 of each merged file.

        Raises TaplineError with the last line of a part that failed three times without finishing another file; the other parts
        continue.
        """
        pieces = self.out / "parts"
        merge = ray.remote(_merge).options(max_retries=-1)
        try:
            ray.get(self.tasks)
            found: list[dict[str, Any]] = (
                _files(self.out, "*.*") if self.merged else ray.get(merge.remote(str(pieces), str(self.out)))
            )
        except ray.exceptions.RayTaskError as error:
            raise TaplineError(str(error.cause)) from None
        shutil.rmtree(pieces, ignore_errors=True)  # another driver may have merged and removed them
        return found

    def cancel(self) -> None:
        """Ends all parts; their finished files stay, and the same `submit` resumes after them."""
        for task in self.tasks:
            ray.cancel(task, force=True)


def _extract(config: str, folder: str, part: int, parts: int) -> list[dict[str, Any]]:
    mine = f"-{part}-of-{parts}" if parts > 1 else ""
    words = ["extract", "--config", config, "--lab", "new", "--quiet", "--json", "--out", folder]
    words += ["--shard", f"{part}/{parts}"]
    before, attempts = -1, 0
    # The files of a merged extraction are compared with its settings instead.
    while parts == 1 or not _is_complete(Path(folder), mine):
        ended = _tapline(words)
        if ended.returncode == 0:
            break
        if _LOCKED not in _last_line(ended):
            finished = len(list(Path(folder).glob(f"shard{mine}-*.safetensors")))
            attempts = 1 if finished > before else attempts + 1
            before = finished
            if attempts >= _ATTEMPTS:
                raise TaplineError(f"Part {part} of {parts} failed: {_last_line(ended)}")
        time.sleep(2)  # the process of a lost worker may still be ending
    return _files(Path(folder), f"shard{mine}-*.safetensors")


def _is_complete(folder: Path, mine: str) -> bool:
    """Whether a part has all of its files, by its index."""
    try:
        index = json.loads((folder / f"index{mine}.json").read_text())
        return bool(index["complete"]) and all(
            (folder / shard["file"]).stat().st_size == shard["bytes"] for shard in index["shards"]
        )
    except FileNotFoundError:
        return False


def _merge(folder: str, out: str) -> list[dict[str, Any]]:
    while True:
        ended = _tapline(["merge", folder, "--out", out, "--quiet", "--json"])
        merged_elsewhere = not Path(folder).exists() and _is_complete(Path(out), "")
        if ended.returncode == 0 or merged_elsewhere:
            return _files(Path(out), "*.*")
        if _LOCKED not in _last_line(ended):
            raise TaplineError(f"The parts could not be merged: {_last_line(ended)}")
        time.sleep(2)


def _tapline(words: list[str]) -> subprocess.CompletedProcess[str]:
    # It ends with this worker, also after kill -9.
    environment = {"TAPLINE_PYTHON": sys.executable, **os.environ, "TAPLINE_PARENT": str(os.getpid())}
    return subprocess.run([*command(), *words], env=environment, capture_output=True, text=True, check=False)


def _last_line(ended: subprocess.CompletedProcess[str]) -> str:
    lines = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
    return lines[-1].removeprefix("tapline: ") if lines else f"exit code {ended.returncode}"


def _files(folder: Path, pattern: str) -> list[dict[str, Any]]:
    paths = sorted(path for path in folder.glob(pattern) if path.suffix in (".safetensors", ".parquet", ".json"))
    return [{"file": path.name, "bytes": path.stat().st_size, "sha256": _sha256(path)} for path in paths]


def _sha256(path: Path) -> str:
    content = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            content.update(block)
    return content.hexdigest()


_NAMES = {"float32": "F32", "int32": "I32"}


def _write(path: Path, tensors: dict[str, Any], rows: str) -> None:
    """A safetensors file, under its name only once it is complete."""
    entries, end = {}, 0
    for name, values in tensors.items():
        begin, end = end, end + values.nbytes
        entries[name] = {"dtype": _NAMES[values.dtype.name], "shape": list(values.shape), "data_offsets": [begin, end]}
    header = json.dumps({"__metadata__": {"format": "pt", "rows": rows}, **entries}).encode()
    header += b" " * (-len(header) % 8)
    partial = path.with_name(f"{path.name}.{os.uname().nodename}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for values in tensors.values():
                file.write(np.ascontiguousarray(values).data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
