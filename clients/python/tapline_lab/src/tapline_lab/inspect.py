"""Inspect (inspect-ai) on a GGUF: a model provider, `tapline/MODEL@PROFILE`, and a solver that captures activations.

Requires inspect-ai 0.3: pip install 'tapline-lab[inspect]'. See docs/profiles.md.

    inspect eval task.py --model tapline/qwen3@polite --model-base-url http://127.0.0.1:8971/v1
"""

from __future__ import annotations

import hashlib
import http.client
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ._errors import TaplineError
from ._model import connect

try:
    from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, modelapi
    from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.solver._task_state import sample_state
except ImportError as error:
    raise TaplineError(f"inspect-ai is needed ({error}): pip install 'tapline-lab[inspect]'.") from error

_ADDRESS = "http://127.0.0.1:8971/v1"
_RESTART_SECONDS = 120
_T = TypeVar("_T")


class TaplineAPI(OpenAICompatibleAPI):
    """Models of a running `tapline serve`; the name may end in a profile, `MODEL@PROFILE`.

    A `tapline` object (interventions, watch, stop_when) for every request is a model argument, `-M tapline=…` in JSON or a
    dict; for single calls, `GenerateConfig(extra_body={"tapline": …})`. The answer's report is in the output's
    `metadata["tapline"]`; the mean score of each watched probe and projection is also in the sample's metadata, as
    `tapline_NAME`, so that `samples_df` has a column for it. A server that restarts is retried.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008
        tapline: Mapping[str, Any] | None = None,
        **model_args: Any,
    ) -> None:
        super().__init__(
            model_name=model_name,
            base_url=base_url,
            api_key=api_key or os.environ.get("TAPLINE_API_KEY") or "none",
            config=config,
            service="tapline",
            service_base_url=_ADDRESS,
            **model_args,
        )
        self._tapline = dict(tapline) if tapline else None

    def completion_params(self, config: GenerateConfig, tools: bool) -> dict[str, Any]:
        params: dict[str, Any] = super().completion_params(config, tools)
        if self._tapline is not None:
            params["extra_body"] = {"tapline": self._tapline, **(params.get("extra_body") or {})}
        return params

    async def generate(self, *args: Any, **kwargs: Any) -> Any:
        result = await super().generate(*args, **kwargs)
        output, call = result if isinstance(result, tuple) else (result, None)
        response = call.response if call is not None else None
        if isinstance(output, ModelOutput) and isinstance(response, Mapping):
            _report(output, response)
        return result


def _report(output: ModelOutput, response: Mapping[str, Any]) -> None:
    """Adds an answer's readings to the output, and their means to the sample."""
    reports = [choice.get("tapline") for choice in response.get("choices") or []]
    found = next((report for report in reports if report), None)
    if found is None:
        return
    output.metadata = {**(output.metadata or {}), "tapline": found}
    state = sample_state()
    if state is not None:
        for name, mean in mean_scores(found).items():
            state.metadata[f"tapline_{name}"] = mean


def mean_scores(report: Mapping[str, Any]) -> dict[str, float]:
    """The mean over the generated tokens of each watched probe's score and each projection, by name."""
    sums: dict[str, list[float]] = {}
    for token in report.get("tokens") or []:
        for kind in ("probes", "projections"):
            for name, value in (token.get(kind) or {}).items():
                if value is not None:
                    sums.setdefault(name, []).append(float(value))
    return {name: sum(values) / len(values) for name, values in sums.items()}


@modelapi(name="tapline")
def tapline() -> type[ModelAPI]:
    """The provider of `tapline/MODEL@PROFILE`."""
    return TaplineAPI


def _retried(run: Callable[[], _T]) -> _T:
    """Calls again while the server restarts: it then answers 502, 503 or not at all."""
    end = time.monotonic() + _RESTART_SECONDS
    while True:
        try:
            return run()
        except (TaplineError, OSError, http.client.HTTPException) as error:
            refused = isinstance(error, TaplineError) and error.status not in (502, 503)
            if refused or time.monotonic() > end:
                raise
            time.sleep(0.5)


@solver
def capture_activations(
    points: Sequence[str], folder: str, *, port: int = 8971, positions: Sequence[int] | None = None
) -> Solver:
    """Captures activations of each sample's input as raw text before the next solver.

    Args:
        points: names such as `block_out.5` or `blocks.*.hook_out`, as in `Model.run`.
        folder: where each sample's `SAMPLE-EPOCH.npz` is written: an array `[tokens, width]` per name, and `tokens`. The
            file's path is in the sample's metadata as `tapline_capture`, its SHA-256 as `tapline_capture_sha256`.
        port: of `tapline serve` on this machine; it must serve the evaluated model.
        positions: tokens to capture; negative ones count from the end. Default: all.
    """
    import numpy as np

    model = connect(port=port)
    os.makedirs(folder, exist_ok=True)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        import anyio.to_thread

        def run() -> str:
            result = _retried(
                lambda: model.run(
                    state.input_text, capture=list(points), positions=None if positions is None else list(positions)
                )
            )
            arrays = {name: np.asarray(result.cache[name])[0] for name in result.cache}
            path = os.path.abspath(os.path.join(folder, f"{state.sample_id}-{state.epoch}.npz"))
            np.savez(path, tokens=np.asarray(result.tokens[0]), **arrays)
            return path

        path = await anyio.to_thread.run_sync(run)
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        state.metadata["tapline_capture"] = path
        state.metadata["tapline_capture_sha256"] = digest
        return state

    return solve
