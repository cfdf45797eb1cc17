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
"""Patience where a dictionary may be downloaded."""


class Lab(Submitting):
    """The isolated research service (`tapline lab`): experiments that run in a worker of their own.

    `base_url` is the service's origin, without /lab/v1; `timeout` the longest silence within one request, in
    seconds. What the service refuses raises TaplineError with its sentence; a service that cannot be reached
    raises urllib's URLError, one that stays silent TimeoutError.
    """

    def __init__(self, base_url: str = "http://127.0.0.1:8980", timeout: float = 10) -> None:
        self._http = Transport(base_url, timeout)

    def __repr__(self) -> str:
        return f"Lab({self._http.origin!r})"

    def health(self) -> Health:
        """What the service can do, its limits, and what it is doing."""
        return cast(Health, self._http.json("/lab/v1/health"))

    def schema(self) -> dict[str, Any]:
        """The service's OpenAPI description."""
        return self._http.json("/lab/v1/openapi.json")

    def jobs(self) -> list[JobSummary]:
        """The newest jobs, at most 100, newest first."""
        return cast(list[JobSummary], self._http.json("/lab/v1/jobs").get("jobs", []))

    def _submit(self, operation: str, model: Model, settings: dict[str, Any]) -> Job[Any]:
        name = model if isinstance(model, str) else os.path.abspath(model)
        given = {field: value for field, value in settings.items() if value is not None}
        return self._job(self._http.json("/lab/v1/jobs", {"operation": operation, "model": name, **given}))

    def inspect(self, model: Model, prompt: str, **settings: Any) -> Job[InspectResult]:
        """Looks inside one forward pass over raw text: norms, logit lens, next tokens, activations.

        Settings: target_token, whose probability and rank the lens then tells at every token, or follow_answer,
        those of the model's own answer after the last token; lens, a stored one that is read beside the logit lens;
        measures, entropy and KL to the model's output; points, inside the blocks; attention (a dictionary with layers
        and heads), routing (of experts) and decompose (one logit into what each block adds).
        """
        return self.submit("inspect", model, prompt=prompt, **settings)

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

        A label of True counts as 1, False as 0. Settings: layers, point (block_in, attn_out, mid, ffn_out, block_out),
        rows (last, mean, response: the mean of a text behind the example's prompt, all: every token's), seed.
        """
        return self.submit("probe", model, examples=[_labelled(one) for one in examples], **settings)

    def sae(
        self,
        model: Model,
        examples: Sequence[SaeExample] | None = None,
        extraction: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> Job[SaeResult]:
        """Trains a sparse autoencoder on block outputs: of the examples' last tokens, or of an extraction's folder.

        Settings: layers, seed, features, steps, architecture (relu, topk, batchtopk, jumprelu), rows (last, mean, response,
        all), point, k, batch, learning_rate, warmup, decay, sparsity.
        """
        if examples is not None:
            settings["examples"] = [_labelled(one) for one in examples]
        if extraction is not None:
            settings["from"] = os.path.abspath(extraction)
        return self.submit("sae", model, **settings)

    def features(
        self, model: Model, dictionary: str, texts: Sequence[str], **settings: Any
    ) -> Job[FeaturesResult]:
        """Reads texts through a sparse dictionary that add_dictionary() has kept.

        Settings: top, pages (features that are looked at one by one), labels.
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

        `data` is a .txt or .jsonl file on the service's machine (or give `examples`), `out` a folder there: a job
        that finds finished files of the same extraction goes on behind them. Without `out` the files are artifacts.
        Settings: layers, point, rows (all, last, mean, response), dtype (f32, f16, bf16), too_long (refuse, cut), shard (i, n),
        shard_tokens, plan.
        """
        paths = {"data": data, "out": out}
        given = {name: os.path.abspath(path) for name, path in paths.items() if path is not None}
        return self.submit("extract", model, **given, **settings)

    def drift(
        self, model: Model, other: Model, examples: Sequence[DriftExample], **settings: Any
    ) -> Job[DriftResult]:
        """Compares two models of one architecture on the same examples, such as a model and its quantised form.

        Settings: layers, seed, dictionary, probe, vector (stored ones, by name), other_revision.
        """
        name = other if isinstance(other, str) else os.path.abspath(other)
        labelled = [_labelled(one) for one in examples]
        return self.submit("drift", model, other=name, examples=labelled, **settings)

    def patch_sweep(
        self, model: Model, clean: str | None = None, corrupted: str | None = None, **settings: Any
    ) -> Job[PatchSweepResult]:
        """Puts single block outputs of one prompt into the run of another: where does it happen?

        Settings: pairs (a list of {"clean", "corrupted", "target_token", "foil_token"}, in place of the two texts),
        target_token, foil_token, layers, points, heads (of the point head_out), positions ("aligned": spans between [[
        and ]] in both texts), direction (denoise or noise), controls.
        """
        return self.submit("patch_sweep", model, clean=clean, corrupted=corrupted, **settings)

    def explain(
        self, model: Model, prompt: str, layer: int, template: str, marker: str, **settings: Any
    ) -> Job[ExplainResult]:
        """Puts block outputs into words: a row of the prompt stands in the place of a token's embedding in another
        model's prompt, the template, where the marker, one of that model's tokens, is.

        Settings: verbaliser (a model, as model is; otherwise model itself), verbaliser_revision, positions (token
        indices; [-1]), length (that rows are scaled to), samples, temperature, seed, description_tokens, controls.
        """
        other = settings.get("verbaliser")
        if other is not None and not isinstance(other, str):
            settings["verbaliser"] = os.path.abspath(other)
        return self.submit(
            "explain", model, prompt=prompt, layer=layer, template=template, marker=marker, **settings
        )

    def dictionaries(self) -> list[dict[str, Any]]:
        """The sparse dictionaries that are kept by name: what each one reads, and where it is from."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/dictionaries")["dictionaries"])

    def dictionary(self, name: str) -> dict[str, Any]:
        """One dictionary that is kept by name."""
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
        """Keeps a published sparse dictionary under a name, in place of one that had it.

        `source` is its folder or file of weights on the service's machine, or `owner/name/path` of the hub, which is
        downloaded first. `layer` is the block that it reads, `point` what of it (its output unless told otherwise) and
        `k` how many features stay active, where its files do not say.
        """
        given = {"from": os.fspath(source), "layer": layer, "point": point, "k": k, "revision": revision}
        body = {key: value for key, value in given.items() if value is not None}
        patience = max(self._http.timeout, _ADDING)
        return self._http.json(_dictionary_path(name), body, timeout=patience, method="PUT")

    def remove_dictionary(self, name: str) -> None:
        """Forgets a dictionary."""
        self._http.json(_dictionary_path(name), method="DELETE")

    def lenses(self) -> list[dict[str, Any]]:
        """The Jacobian and tuned lenses that are kept by name: which blocks each one translates, and where it is from."""
        return cast("list[dict[str, Any]]", self._http.json("/lab/lenses")["lenses"])

    def add_lens(
        self, name: str, source: str | os.PathLike[str], revision: str | None = None
    ) -> dict[str, Any]:
        """Keeps a Jacobian or tuned lens under a name, in place of one that had it.

        `source` is its folder or file of weights on the service's machine, `owner/name/path` of the hub, which is
        downloaded first, or `demo`, the embedded model's.
        """
        given = {"from": os.fspath(source), "revision": revision}
        body = {key: value for key, value in given.items() if value is not None}
        patience = max(self._http.timeout, _ADDING)
        return self._http.json(_lens_path(name), body, timeout=patience, method="PUT")

    def remove_lens(self, name: str) -> None:
        """Forgets a lens."""
        self._http.json(_lens_path(name), method="DELETE")

    def job(self, identifier: str | Job[Any]) -> Job[Any]:
        """The whole job as it is now, with its configuration and its result or error."""
        return self._job(self._http.json(_path(identifier)))

    @overload
    def wait(self, identifier: Job[R], timeout: float = 1800, interval: float = 0.5) -> Job[R]: ...
    @overload
    def wait(self, identifier: str, timeout: float = 1800, interval: float = 0.5) -> Job[Any]: ...
    def wait(self, identifier: str | Job[Any], timeout: float = 1800, interval: float = 0.5) -> Job[Any]:
        """Waits until a job has completed and gives it with its result.

        `timeout` is the overall deadline and `interval` the time between two looks, in seconds. Takes the
        id, or the job as submitted, whose type of result it keeps. Raises TaplineError, with the job in it,
        when the job failed, was cancelled or interrupted; TimeoutError on the deadline, which does not cancel
        the job. On a terminal, a line on standard error says what the job is doing; in a notebook, one below
        the cell.
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
        """Stops a job's worker; a finished job stays as it is."""
        return self._job(self._http.json(f"{_path(identifier)}/cancel", {}))

    def artifact(
        self, identifier: str | Job[Any], name: str, destination: str | os.PathLike[str]
    ) -> Path:
        """Downloads an artifact that the job lists and gives the destination's path.

        The destination is overwritten, in one step and only by a complete file. What is no file
        (a device, a named pipe) is written to as it is; a folder is refused before anything is asked.
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
            raise TaplineError(f"{self._http.origin} answered with something that is no job.")
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
    """An example whose label may be a truth value; everything else is the service's to judge."""
    label: Any = example.get("label") if isinstance(example, Mapping) else None
    plain = label.item() if hasattr(label, "item") else label
    return {**example, "label": int(plain)} if isinstance(plain, bool) else example


def _artifact_path(identifier: str | Job[Any], name: str) -> str:
    return f"{_path(identifier)}/artifacts/{quote(name, safe='')}"
