from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from ._job import Job
from ._lab import Lab, Model, _name
from ._progress import progress_display
from ._waiting import Waiting
from .types import (
    AsyncSubmitting,
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
)

R = TypeVar("R")


class AsyncLab(AsyncSubmitting):
    """`Lab` for asyncio: the same methods, but awaitable.

    Each request runs in its own thread, so that the event loop is not blocked. Cancelling a waiting task does not
    cancel the job. A job's layers(), probes() and autoencoders() block: use `await asyncio.to_thread(job.layers)`.
    """

    def __init__(self, base_url: str = "http://127.0.0.1:8980", timeout: float = 10) -> None:
        self._lab = Lab(base_url, timeout)

    def __repr__(self) -> str:
        return f"Async{self._lab!r}"

    async def health(self) -> Health:
        """Returns the service's operations, limits and current activity."""
        return await asyncio.to_thread(self._lab.health)

    async def schema(self) -> dict[str, Any]:
        """Returns the service's OpenAPI document."""
        return await asyncio.to_thread(self._lab.schema)

    async def jobs(self) -> list[JobSummary]:
        """Returns the newest jobs, at most 100, newest first."""
        return await asyncio.to_thread(self._lab.jobs)

    async def _submit(self, operation: str, model: Model, settings: dict[str, Any]) -> Job[Any]:
        return await asyncio.to_thread(self._lab._submit, operation, model, settings)

    async def inspect(self, model: Model, prompt: str | Sequence[int], **settings: Any) -> Job[InspectResult]:
        """Looks inside one forward pass over raw text."""
        return await asyncio.to_thread(self._lab.inspect, model, prompt, **settings)

    async def compare(self, model: Model, prompt: str | None = None, **settings: Any) -> Job[CompareResult]:
        """Compares the model with and without an intervention at one block."""
        return await asyncio.to_thread(self._lab.compare, model, prompt, **settings)

    async def features(
        self, model: Model, dictionary: str, texts: Sequence[str], **settings: Any
    ) -> Job[FeaturesResult]:
        """Encodes texts with a saved sparse dictionary."""
        return await asyncio.to_thread(
            lambda: self._lab.features(model, dictionary, texts, **settings)
        )

    async def drift(
        self, model: Model, other: Model, examples: Sequence[DriftExample], **settings: Any
    ) -> Job[DriftResult]:
        """Compares two models of the same architecture on the same examples."""
        return await asyncio.to_thread(lambda: self._lab.drift(model, other, examples, **settings))

    async def explain(
        self, model: Model, prompt: str, layer: int, template: str, marker: str, **settings: Any
    ) -> Job[ExplainResult]:
        """Describes activations in words with a verbalizer model."""
        return await asyncio.to_thread(
            lambda: self._lab.explain(model, prompt, layer, template, marker, **settings)
        )

    async def graph(self, model: Model, prompt: str, **settings: Any) -> Job[GraphResult]:
        """An attribution graph of neurons and attention heads."""
        return await asyncio.to_thread(self._lab.graph, model, prompt, **settings)

    async def extract(
        self,
        model: Model,
        data: str | os.PathLike[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> Job[ExtractResult]:
        """Writes the block outputs of a data set to .safetensors files."""
        return await asyncio.to_thread(lambda: self._lab.extract(model, data, out, **settings))

    async def patch_sweep(
        self, model: Model, clean: str | None = None, corrupted: str | None = None, **settings: Any
    ) -> Job[PatchSweepResult]:
        """Activation patching: patches single activations of one prompt into a run on another."""
        return await asyncio.to_thread(
            lambda: self._lab.patch_sweep(model, clean, corrupted, **settings)
        )

    async def probe(
        self, model: Model, examples: Sequence[ProbeExample], **settings: Any
    ) -> Job[ProbeResult]:
        """Trains a linear probe on final-token block outputs."""
        return await asyncio.to_thread(self._lab.probe, model, examples, **settings)

    async def sae(
        self,
        model: Model,
        examples: Sequence[SaeExample] | None = None,
        extraction: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> Job[SaeResult]:
        """Trains a sparse autoencoder on block outputs of examples or of an extraction."""
        return await asyncio.to_thread(self._lab.sae, model, examples, extraction, **settings)

    async def dictionaries(self) -> list[dict[str, Any]]:
        """Returns the saved sparse dictionaries."""
        return await asyncio.to_thread(self._lab.dictionaries)

    async def dictionary(self, name: str) -> dict[str, Any]:
        """Returns a saved dictionary."""
        return await asyncio.to_thread(self._lab.dictionary, name)

    async def add_dictionary(
        self,
        name: str,
        source: str | os.PathLike[str],
        layer: int | None = None,
        k: int | None = None,
        revision: str | None = None,
        point: BlockPoint | None = None,
    ) -> dict[str, Any]:
        """Saves a published sparse dictionary under a name, like Lab.add_dictionary()."""
        return await asyncio.to_thread(self._lab.add_dictionary, name, source, layer, k, revision, point)

    async def remove_dictionary(self, name: str) -> None:
        """Deletes a saved dictionary."""
        await asyncio.to_thread(self._lab.remove_dictionary, name)

    async def lenses(self) -> list[dict[str, Any]]:
        """Returns the saved lenses."""
        return await asyncio.to_thread(self._lab.lenses)

    async def add_lens(
        self, name: str, source: str | os.PathLike[str], revision: str | None = None
    ) -> dict[str, Any]:
        """Saves a lens under a name, like Lab.add_lens()."""
        return await asyncio.to_thread(self._lab.add_lens, name, source, revision)

    async def remove_lens(self, name: str) -> None:
        """Deletes a saved lens."""
        await asyncio.to_thread(self._lab.remove_lens, name)

    async def job(self, identifier: str | Job[Any]) -> Job[Any]:
        """Returns a job with its configuration and its result or error."""
        return await asyncio.to_thread(self._lab.job, identifier)

    @overload
    async def wait(self, identifier: Job[R], timeout: float = 1800, interval: float = 0.5) -> Job[R]: ...
    @overload
    async def wait(self, identifier: str, timeout: float = 1800, interval: float = 0.5) -> Job[Any]: ...
    async def wait(
        self, identifier: str | Job[Any], timeout: float = 1800, interval: float = 0.5
    ) -> Job[Any]:
        """Waits until a job has completed, like Lab.wait()."""
        name = _name(identifier)
        waiting, line = Waiting(name, timeout), progress_display()
        try:
            while True:
                seen = await asyncio.to_thread(self._lab._look, name, waiting)
                if waiting.is_over(seen):
                    return seen
                line.show(seen, waiting.seconds())
                await asyncio.sleep(waiting.pause(seen, interval))
        finally:
            line.clear()

    async def cancel(self, identifier: str | Job[Any]) -> Job[Any]:
        """Cancels a job; has no effect on a finished one."""
        return await asyncio.to_thread(self._lab.cancel, identifier)

    async def artifact(
        self, identifier: str | Job[Any], name: str, destination: str | os.PathLike[str]
    ) -> Path:
        """Downloads an artifact of a job and returns the destination's path."""
        return await asyncio.to_thread(self._lab.artifact, identifier, name, destination)
