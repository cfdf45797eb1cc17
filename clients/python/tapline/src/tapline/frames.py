"""Results of jobs as pandas DataFrames. Nothing else of this package imports this module, which needs pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._errors import TaplineError

try:
    import pandas as pd
except ImportError:
    raise TaplineError(
        "pandas is not installed, and frames need it: pip install 'tapline-client[notebook]'."
    ) from None


def frame(operation: str, result: Mapping[str, Any]) -> pd.DataFrame:
    """The part of a result that is a table.

    compare: a row for each trial; what is nested (`change`, `control`) becomes columns such as `control.delta`.
    probe: a row for each example and layer, with its score. sae: a row for each feature and layer.
    features: a row for each feature that the result names of a token.
    patch_sweep: a row for each layer and position.
    inspect: a row for each token and layer, with its norm and the lens's first candidate.
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
        raise TaplineError(f"A result of {operation} has no table.")
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
