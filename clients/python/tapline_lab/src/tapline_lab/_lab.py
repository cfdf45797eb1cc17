from __future__ import annotations

import io
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, overload
from urllib.parse import quote

from ._errors import TaplineError
from ._http import Transport
from ._job import Job
from ._places import place_of
from ._progress import progress_display
from ._waiting import Waiting
from .types import (
    BlockPoint,
    CompareResult,
    DriftExample,
    DriftResult,
    ExplainResult,
    ExtractResult,
    FeaturesResult,
    GraphResult,
    Health,
    InspectResult,
    JobSummary,
    PatchSweepResult,
    ProbeExample,
    ProbeResult,
    SaeExample,
    SaeResult,
    Submitting,
)

R = TypeVar("R")
Model = str | os.PathLike[str]

_ADDING = 3600.0
"""Timeout for requests that may download files."""


class Lab(Submitting):
    """The Lab service (`tapline lab`): experiments that run in a separate worker process.

    `base_url` is the service's origin, without /lab/v1; `timeout` is the longest silence within one request, in
    seconds. Refused requests raise TaplineError with the service's message; an unreachable service raises
    urllib's URLError, a silent one TimeoutError.
    """

    def __init__(self, base_url: str = "http://127.0.0.1:8980", timeout: float = 10) -> None:
        self._http = Transport(base_url, timeout)

    def __repr__(self) -> str:
        return f"Lab({self._http.origin!r})"

    def health(self) -> Health:
        """Returns the service's operations, limits and current activity."""
        return cast(Health, self._http.json("/lab/v1/health"))

    def schema(self) -> dict[str, Any]:
        """Returns the service's OpenAPI document."""
        return self._http.json("/lab/v1/openapi.json")

    def jobs(self) -> list[JobSummary]:
        """Returns the newest jobs, at most 100, newest first."""
        return cast(list[JobSummary], self._http.json("/lab/v1/jobs").get("jobs", []))

    def _submit(self, operation: str, model: Model, settings: dict[str, Any]) -> Job[Any]:
        name = model if isinstance(model, str) else os.path.abspath(model)
        given = {field: value for field, value in settings.items() if value is not None}
        return self._job(self._http.json("/lab/v1/jobs", {"operation": operation, "model": name, **given}))

    def inspect(self, model: Model, prompt: str | Sequence[int], **settings: Any) -> Job[InspectResult]:
        """Looks inside one forward pass over raw text: norms, logit lens, next tokens, activations.

        Instead of a text, `prompt` can be a list of token ids, which run exactly as given (the field `tokens`).
        Settings: target_token, whose probability and rank the lens reports at every token, or follow_answer, to track
        the model's own answer after the last token; lens, a saved lens to use in addition to the logit lens; measures,
        entropy and KL to the model's output; points, hook points inside the blocks; attention (a dictionary with layers
        and heads), routing (of experts) and decompose (direct logit attribution by block).
        """
        given: dict[str, Any] = {"prompt": prompt} if isinstance(prompt, str) else {"tokens": list(prompt)}
        return self.submit("inspect", model, **given, **settings)

    def compare(self, model: Model, prompt: str | None = None, **settings: Any) -> Job[CompareResult]:
        """Compares the model with and without an intervention at one block, on one prompt or on `prompts`.

        Settings: intervention (scale, ablate, patch, steer, project_out, clamp, swap), strengths, strength_unit (unit,
        vector, row_norm), positions (last, all, prompt, generated, or ranges), target_token, prompts (a list),
        donor_prompt, positive and negative (or positives and negatives, lists, or feature: a dictionary's name and an
        index), min, max, point, heads, controls, swap (two tokens) and lens.
        """
        return self.submit("compare", model, prompt=prompt, **settings)

    def probe(self, model: Model, examples: Sequence[ProbeExample], **settings: Any) -> Job[ProbeResult]:
        """Trains a linear probe on final-token block outputs; examples have text, label and split.

        Labels may be 0, 1 or booleans. Settings: layers, point (block_in, attn_out, mid, ffn_in, ffn_out, block_out), rows (last,
        mean, response: the mean over the text after the example's prompt, all: every token), grid (points, positions and c: one more probe
        for each combination with the layers), seed.
        """
        return self.submit("probe", model, examples=[_labelled(one) for one in examples], **settings)

    def sae(
        self,
        model: Model,
        examples: Sequence[SaeExample] | None = None,
        extraction: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> Job[SaeResult]:
        """Trains a sparse autoencoder on block outputs: of the examples' last tokens, or from an extraction's folder.

        Settings: layers, seed, features, steps, architecture (relu, topk, batchtopk, jumprelu), rows (last, mean, response,
        all), first_position, point, target and skip (for transcoders), k, batch, learning_rate, warmup, decay, sparsity.
        """
        if examples is not None:
            settings["examples"] = [_labelled(one) for one in examples]
        if extraction is not None:
            settings["from"] = os.path.abspath(extraction)
        return self.submit("sae", model, **settings)

    def features(
        self, model: Model, dictionary: str, texts: Sequence[str], **settings: Any
    ) -> Job[FeaturesResult]:
        """Encodes texts with a sparse dictionary saved by add_dictionary().

        Settings: top, pages (features to show in detail), labels.
        """
        return self.submit("features", model, dictionary=dictionary, texts=list(texts), **settings)

    def extract(
        self,
        model: Model,
        data: str | os.PathLike[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> Job[ExtractResult]:
        """Writes the block outputs of a data set to .safetensors files.

        `data` is a .txt, .jsonl, .csv or .parquet file, or a folder of Hugging Face `datasets`, on the service's machine or at a URL (or
        pass `examples`); `out` a folder there, or an s3:// or gs:// URL: if it has finished files of the same extraction, the job
        resumes after them. Without `out` the files become artifacts.
        Settings: layers, point, target, rows (all, last, mean, response), dtype (f32, f16, bf16), too_long (refuse, cut),
        shard (i, n), shard_tokens, plan.
        """
        paths = {"data": data, "out": out}
        given = {name: place_of(path) for name, path in paths.items() if path is not None}
        return self.submit("extract", model, **given, **settings)

    def drift(
        self, model: Model, other: Model, examples: Sequence[DriftExample], **settings: Any
    ) -> Job[DriftResult]:
        """Compares two models of the same architecture on the same examples, such as a model and its quantized version.

        Settings: layers, seed, dictionary, probe, vector (names of saved ones), other_revision.
        """
        name = other if isinstance(other, str) else os.path.abspath(other)
        labelled = [_labelled(one) for one in examples]
        return self.submit("drift", model, other=name, examples=labelled, **settings)

    def patch_sweep(
        self, model: Model, clean: str | None = None, corrupted: str | None = None, **settings: Any
    ) -> Job[PatchSweepResult]:
        """Activation patching: patches single activations of one prompt into a run on another.

        Settings: pairs (a list of {"clean", "corrupted", "target_token", "foil_token"}, instead of the two texts),
        target_token, foil_token, layers, points, heads (of the point head_out), positions ("aligned": spans between [[
        and ]] in both texts), direction (denoise or noise), controls.
        """
        return self.submit("patch_sweep", model, clean=clean, corrupted=corrupted, **settings)

    def graph(self, model: Model, prompt: str, **settings: Any) -> Job[GraphResult]:
        """An attribution graph: which neurons and attention heads the next tokens' logits come from, and how they affect
        each other, with attention weights, norms and gates frozen; with transcoders, their features instead.

        Settings: position (token index; default: -1), target_token, foil_token, transcoders (name of a saved set, or of
        one), zero_positions (first tokens without features), nodes (at most), first_token, node_threshold,
        edge_threshold, measured (nodes to remove for real), seed.
        """
        return self.submit("graph", model, prompt=prompt, **settings)

    def explain(
        self, model: Model, prompt: str, layer: int, template: str, marker: str, **settings: Any
    ) -> Job[ExplainResult]:
        """Describes activations in words: an activation of the prompt replaces a token's embedding in another model's
        prompt, the template, at the marker, which is one of that model's tokens.

        Settings: verbaliser (a model; default: the same model), verbaliser_revision, positions (token indices;
        default: [-1]), length (norm to scale activations to), samples, temperature, seed, description_tokens, controls.
        """
        other = settings.get("verbaliser")
        if other is not None and not isinstance(other, str):
            settings["verbaliser"] = os.path.abspath(other)
        return self.submit(
            "explain", model, prompt=prompt, layer=layer, template=template, marker=marker, **settings
        )

    def dictionaries(self) -> list[dict[str, Any]]:
        """Returns the saved sparse dictionaries, with the model, layer and source of each."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/dictionaries")["dictionaries"])

    def dictionary(self, name: str) -> dict[str, Any]:
        """Returns a saved dictionary."""
        return self._http.json(_dictionary_path(name))

    def add_dictionary(
        self,
        name: str,
        source: str | os.PathLike[str],
        layer: int | None = None,
        k: int | None = None,
        revision: str | None = None,
        point: BlockPoint | None = None,
    ) -> dict[str, Any]:
        """Saves a published sparse dictionary under a name, replacing an existing one.

        `source` is its folder or weights file on the service's machine, or `owner/name/path` on the hub, which is
        downloaded. `layer` is the block, `point` the hook point (default: the block's output) and `k` the number of
        active features, if its files do not contain them.
        """
        given = {"from": os.fspath(source), "layer": layer, "point": point, "k": k, "revision": revision}
        body = {key: value for key, value in given.items() if value is not None}
        patience = max(self._http.timeout, _ADDING)
        return self._http.json(_dictionary_path(name), body, timeout=patience, method="PUT")

    def remove_dictionary(self, name: str) -> None:
        """Deletes a saved dictionary."""
        self._http.json(_dictionary_path(name), method="DELETE")

    def lenses(self) -> list[dict[str, Any]]:
        """Returns the saved Jacobian and tuned lenses, with the blocks and source of each."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/lenses")["lenses"])

    def add_lens(
        self, name: str, source: str | os.PathLike[str], revision: str | None = None
    ) -> dict[str, Any]:
        """Saves a Jacobian or tuned lens under a name, replacing an existing one.

        `source` is its folder or weights file on the service's machine, `owner/name/path` on the hub, which is
        downloaded, or `demo` for the embedded model's lens.
        """
        given = {"from": os.fspath(source), "revision": revision}
        body = {key: value for key, value in given.items() if value is not None}
        patience = max(self._http.timeout, _ADDING)
        return self._http.json(_lens_path(name), body, timeout=patience, method="PUT")

    def remove_lens(self, name: str) -> None:
        """Deletes a saved lens."""
        self._http.json(_lens_path(name), method="DELETE")

    def job(self, identifier: str | Job[Any]) -> Job[Any]:
        """Returns a job with its configuration and its result or error."""
        return self._job(self._http.json(_path(identifier)))

    @overload
    def wait(self, identifier: Job[R], timeout: float = 1800, interval: float = 0.5) -> Job[R]: ...
    @overload
    def wait(self, identifier: str, timeout: float = 1800, interval: float = 0.5) -> Job[Any]: ...
    def wait(self, identifier: str | Job[Any], timeout: float = 1800, interval: float = 0.5) -> Job[Any]:
        """Waits until a job has completed and returns it with its result.

        `timeout` is the overall deadline and `interval` the polling interval, in seconds. Takes an id, or the
        submitted job, whose result type it preserves. Raises TaplineError, with the job, if the job failed, was
        cancelled or interrupted; TimeoutError on the deadline, which does not cancel the job. Shows progress on
        standard error in a terminal, or below the cell in a notebook.
        """
        name = _name(identifier)
        waiting, line = Waiting(name, timeout), progress_display()
        try:
            while True:
                seen = self._look(name, waiting)
                if waiting.is_over(seen):
                    return seen
                line.show(seen, waiting.seconds())
                time.sleep(waiting.pause(seen, interval))
        finally:
            line.clear()

    def _look(self, name: str, waiting: Waiting) -> Job[Any]:
        return self._job(self._http.json(_path(name), timeout=waiting.patience(self._http.timeout)))

    def cancel(self, identifier: str | Job[Any]) -> Job[Any]:
        """Cancels a job; has no effect on a finished one."""
        return self._job(self._http.json(f"{_path(identifier)}/cancel", {}))

    def artifact(
        self, identifier: str | Job[Any], name: str, destination: str | os.PathLike[str]
    ) -> Path:
        """Downloads an artifact of a job and returns the destination's path.

        The destination is replaced atomically by the complete file. Devices and named pipes are written to
        directly; folders are rejected before the download.
        """
        path = Path(destination)
        if path.exists() and not path.is_file():
            with open(path, "wb") as stream:
                self._http.download(_artifact_path(identifier, name), stream)
            return path
        partial = path.with_name(f"{path.name}.{secrets.token_hex(6)}.part")
        try:
            with open(partial, "xb") as file:
                self._http.download(_artifact_path(identifier, name), file)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        return path

    def _job(self, fields: Mapping[str, Any]) -> Job[Any]:
        if not {"id", "status", "operation"} <= fields.keys():
            raise TaplineError(f"{self._http.origin} returned something that is not a job.")
        return Job(fields, self._read_artifact)

    def _read_artifact(self, identifier: str, name: str) -> bytes:
        buffer = io.BytesIO()
        self._http.download(_artifact_path(identifier, name), buffer)
        return buffer.getvalue()


def _name(identifier: str | Job[Any]) -> str:
    return identifier if isinstance(identifier, str) else str(identifier["id"])


def _path(identifier: str | Job[Any]) -> str:
    name = _name(identifier)
    if not name:
        raise TaplineError("The job's id is empty.")
    return f"/lab/v1/jobs/{quote(name, safe='')}"


def _dictionary_path(name: str) -> str:
    if not name:
        raise TaplineError("The dictionary's name is empty.")
    return f"/lab/dictionaries/{quote(name, safe='')}"


def _lens_path(name: str) -> str:
    if not name:
        raise TaplineError("The lens's name is empty.")
    return f"/lab/lenses/{quote(name, safe='')}"


def _labelled(example: Any) -> Any:
    """Converts a boolean label to 0 or 1; everything else is validated by the service."""
    label: Any = example.get("label") if isinstance(example, Mapping) else None
    plain = label.item() if hasattr(label, "item") else label
    return {**example, "label": int(plain)} if isinstance(plain, bool) else example


def _artifact_path(identifier: str | Job[Any], name: str) -> str:
    return f"{_path(identifier)}/artifacts/{quote(name, safe='')}"
