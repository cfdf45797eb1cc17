"""Jobs as HTML for notebooks. Texts of models and prompts are escaped: they are data, not markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_MOST_ROWS = 40


def job_as_html(job: Mapping[str, Any]) -> str:
    head = f"{job['operation']} {str(job['id'])[:8]}, {job.get('model', '')}: {job['status']}"
    about = f"<p><b>{_cell(head)}</b></p>"
    if job.get("error"):
        return f"{about}<p>{_cell(job['error'])}</p>"
    result = job.get("result")
    tables = {
        "inspect": _inspect,
        "compare": _compare,
        "probe": _probe,
        "sae": _sae,
        "features": _features,
        "extract": _extract,
        "drift": _drift,
        "patch_sweep": _sites,
        "explain": _explain,
    }
    draw = tables.get(str(job["operation"]))
    return about if not result or draw is None else about + draw(result)


def _inspect(result: Mapping[str, Any]) -> str:
    candidates = [(repr(each["token"]), each["probability"]) for each in result["next_tokens"]]
    norms = [(each["layer"], *each["norms"]) for each in result["layers"]]
    tokens = [repr(token) for token in result["tokens"]]
    return _table(("next token", "probability"), candidates) + _table(("norms of layer", *tokens), norms)


def _compare(result: Mapping[str, Any]) -> str:
    fields = ("prompt", "strength", "target_token", "baseline_probability", "probability", "delta", "output")
    return _table(fields, ([trial[field] for field in fields] for trial in result["trials"]))


def _probe(result: Mapping[str, Any]) -> str:
    fields = ("layer", "accuracy", "auc", "majority_accuracy", "shuffled_label_accuracy", "test_size")
    return _table(fields, ([report[field] for field in fields] for report in result["reports"]))


def _sae(result: Mapping[str, Any]) -> str:
    fields = ("layer", "explained_variance", "held_out_mse", "mean_active", "dead_features")
    return _table(fields, ([report[field] for field in fields] for report in result["reports"]))


def _features(result: Mapping[str, Any]) -> str:
    fidelity = result["fidelity"]
    figures = ("tokens", "l0", "explained_variance", "cosine", "loss_recovered")
    fields = ("feature", "max", "mean", "frequency", "text", "token")
    strongest = ([each[field] for field in fields] for each in result["features"])
    return _table(figures, [[fidelity[figure] for figure in figures]]) + _table(fields, strongest)


def _extract(result: Mapping[str, Any]) -> str:
    fields = ("texts", "tokens", "row_count", "hidden", "dtype", "files", "bytes", "folder")
    return _table(fields, [[result[field] for field in fields]])


def _drift(result: Mapping[str, Any]) -> str:
    measures = ("cosine", "relative_length", "relative_difference")
    rows = ([each["layer"], *(each[name]["value"] for name in measures)] for each in result["layers"])
    return _table(("layer", *measures), rows)


def _sites(result: Mapping[str, Any]) -> str:
    runs = ("clean", "corrupted", "restored")
    sites_of = result["sites"]
    inner = tuple(name for name in ("point", "head") if any(site.get(name, "block_out") != "block_out" for site in sites_of))
    fields = ("layer", *inner, "position", "logit_difference", "change", "recovery")
    furthest = sorted(result["sites"], key=lambda site: -abs(float(site["change"])))
    sites = ([site.get(field, "") for field in fields] for site in furthest)
    return _table(runs, [[result[run] for run in runs]]) + _table(fields, sites)


def _explain(result: Mapping[str, Any]) -> str:
    rows = [
        [each["position"], repr(each["token"]), what, said["text"]]
        for each in result["explained"]
        for what in ("descriptions", "shuffled")
        for said in each.get(what, [])
    ]
    rows += [["", "", "without a row", said["text"]] for said in result.get("unfilled", [])]
    return _table(("position", "token", "what", "text"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    all_rows = list(rows)
    lines = ["".join(f"<th>{_cell(name.replace('_', ' '))}</th>" for name in head)]
    lines += ["".join(f"<td>{_cell(value)}</td>" for value in row) for row in all_rows[:_MOST_ROWS]]
    more = len(all_rows) - _MOST_ROWS
    after = f"<p>{more} more rows are in the job's result.</p>" if more > 0 else ""
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{after}"


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    # Escape invisible characters, as repr() does: a direction mark would reverse the table.
    visible = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    return escape(visible)
