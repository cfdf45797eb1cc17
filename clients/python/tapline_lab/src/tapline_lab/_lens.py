"""The logit lens on captured activations, with the model's own weights, and a run as HTML. Requires NumPy."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import TaplineError
from ._forward import log_softmax
from .figures import Figure, figure

if TYPE_CHECKING:
    from ._forward import Run
    from ._model import Model

_MOST_TOKENS = 12
_MOST_BLOCKS = 24
_CHECK = "The capital of France is"
_BOUND = 0.05


def lens(model: Model, run: Run, sequence: int = 0) -> Figure:
    """The most probable next token at each captured block output, for the last tokens of a sequence.

    Raises TaplineError if no block outputs of whole texts were captured, or if the final norm and unembedding do
    not give the model's own logits, so that the picture could be wrong.
    """
    layers = _layers(run)
    if not layers:
        raise TaplineError('A lens needs block outputs: capture="block_out.*".')
    reason = reason_against(model)
    if reason is not None:
        raise TaplineError(reason)
    tokens = run.tokens[sequence][-_MOST_TOKENS:]
    chosen = layers if len(layers) <= _MOST_BLOCKS else [layers[round(i)] for i in np.linspace(0, len(layers) - 1, _MOST_BLOCKS)]
    read = []
    for layer in chosen:
        rows = run.cache[f"block_out.{layer}"][sequence][-len(tokens) :]
        log_probs = log_softmax(head(model, rows))
        best = log_probs.argmax(-1)
        read.append((layer, best, np.exp(log_probs[np.arange(len(best)), best])))
    names = _texts(model, {int(one) for _, best, _ in read for one in best} | {int(token) for token in tokens})
    result = {
        "tokens": [names[int(token)] for token in tokens],
        "layers": [
            {
                "layer": layer,
                "predictions": [
                    [{"token": names[int(token)], "probability": float(probability)}]
                    for token, probability in zip(best, probabilities)
                ],
            }
            for layer, best, probabilities in read
        ],
    }
    return figure("inspect", result)


def head(model: Model, rows: Any) -> Any:
    """Logits [rows, vocabulary] of rows of the residual stream: final norm, unembedding, and the architecture's cap."""
    wide = np.asarray(rows, np.float32)
    eps = float(
        model.hyperparameter("attention.layer_norm_rms_epsilon", model.hyperparameter("attention.layer_norm_epsilon", 1e-5))
    )
    if "output_norm.bias" in model.tensors:
        centred = wide - wide.mean(-1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * model.final_norm
        normed = normed + model.weight("output_norm.bias")
    else:
        normed = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps) * model.final_norm
    logits = normed @ model.W_U
    cap = model.hyperparameter("final_logit_softcapping")
    return logits if not cap else cap * np.tanh(logits / cap)


def reason_against(model: Model) -> str | None:
    """Why `head` is not this model's own, or None; compared once with the logits of a pass."""
    known = model.__dict__.get("_lens_reason", ...)
    if known is not ...:
        return str(known) if known is not None else None
    try:
        run = model.run(_CHECK, f"block_out.{model.n_layers - 1}", logits="last")
        own = run.logits[0, -1].astype(np.float64)
        found = head(model, run.cache[f"block_out.{model.n_layers - 1}"][0, -1:])[0]
        apart = float(np.linalg.norm(found - own) / np.linalg.norm(own))
        reason = None if apart <= _BOUND else f"The final norm and unembedding give other logits than the model ({apart:.2f})."
    except TaplineError as error:
        reason = f"The logit lens is not possible: {error}"
    model.__dict__["_lens_reason"] = reason
    return reason


def run_as_html(run: Run, model: Model | None) -> str:
    """A table of the captures, and the lens of the first sequence where it is possible."""
    about = f"<p><b>{escape(repr(run))}</b></p>"
    rows = [(name, _shape(values)) for name, values in list(run.cache.items())[:40]]
    if run.logits is not None:
        rows.append(("logits", _shape(run.logits)))
    cells = "".join(f"<tr><td>{escape(name)}</td><td>{escape(shape)}</td></tr>" for name, shape in rows)
    more = len(run.cache) - 40
    table = f"<table><tr><th>capture</th><th>shape</th></tr>{cells}</table>" if rows else ""
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    if model is None or not _layers(run):
        return about + table + rest
    try:
        return about + lens(model, run).svg + table + rest
    except (TaplineError, OSError) as error:
        return f"{about}{table}{rest}<p>{escape(str(error))}</p>"


def _layers(run: Run) -> list[int]:
    """Layers whose block outputs were captured for every token of the first sequence."""
    length = len(run.tokens[0])
    return [layer for layer in run.cache.layers("block_out") if len(run.cache[f"block_out.{layer}"][0]) == length]


def _texts(model: Model, tokens: set[int]) -> dict[int, str]:
    return {token: model.to_string([token]) for token in tokens}


def _shape(values: Any) -> str:
    if isinstance(values, list):
        return ", ".join(_shape(one) for one in values[:4]) + ("…" if len(values) > 4 else "")
    return f"{values.dtype} {list(values.shape)}"
