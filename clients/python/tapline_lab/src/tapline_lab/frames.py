"""Results of jobs as pandas DataFrames. Imported only on demand, since it requires pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import TaplineError

try:
    import pandas as pd
except ImportError:
    raise TaplineError(
        "DataFrames require pandas, which is not installed: pip install 'tapline-lab[notebook]'."
    ) from None


def frame(operation: str, result: Mapping[str, Any]) -> pd.DataFrame:
    """The result as a table.

    compare: one row per trial; nested fields (`change`, `control`) become columns such as `control.delta`.
    probe: one row per example and layer, with its score. sae: one row per feature and layer.
    features: one row per token and listed feature. patch_sweep: one row per layer and position.
    inspect: one row per token and layer, with its norm and the lens's top token.
    """
    make = {
        "compare": _trials,
        "probe": _scores,
        "sae": _features,
        "inspect": _tokens,
        "features": _active,
        "patch_sweep": _sites,
    }.get(operation)
    if make is None:
        raise TaplineError(f"Results of {operation} have no table.")
    return pd.json_normalize(make(result))


def _trials(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(trial) for trial in result["trials"]]


def _scores(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"layer": report["layer"], **score} for report in result["reports"] for score in report["scores"]
    ]


def _features(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "layer": report["layer"],
            **{name: feature[name] for name in ("feature", "mean", "frequency")},
            "example": feature["examples"][0]["text"] if feature["examples"] else None,
        }
        for report in result["reports"]
        for feature in report["features"]
    ]


def _active(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"text": index, "position": position, "token": token, **named}
        for index, text in enumerate(result["texts"])
        for position, (token, top) in enumerate(zip(text["tokens"], text["top"]))
        for named in top
    ]


def _sites(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(site) for site in result["sites"]]


def _tokens(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for layer in result["layers"]:
        lens = layer.get("predictions")
        for index, (token, norm) in enumerate(zip(result["tokens"], layer["norms"])):
            row = {"layer": layer["layer"], "position": index, "token": token, "norm": norm}
            if lens:
                first = lens[index][0]
                row.update(lens_token=first["token"], lens_probability=first["probability"])
            target = layer.get("target", [])
            if len(target) == len(result["tokens"]):
                row.update(target_rank=target[index]["rank"], target_probability=target[index]["probability"])
            rows.append(row)
    return rows


def captured(sequences: Sequence[Any]) -> pd.DataFrame:
    """One row per sequence and captured token, one column per value."""
    frames = []
    for sequence, rows in enumerate(sequences):
        frame = pd.DataFrame(rows.reshape(len(rows), -1))
        frame.insert(0, "row", range(len(rows)))
        frame.insert(0, "sequence", sequence)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)
