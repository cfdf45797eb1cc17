"""Answers of `Model.generate`: live requests whose readings and activations come back as arrays."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._errors import TaplineError

if TYPE_CHECKING:
    from ._serving import ServingModel

_HOOKS = {
    "hook_in": "block_in",
    "hook_resid_pre": "block_in",
    "attn.hook_z": "head_out",
    "hook_attn_out": "attn_out",
    "attn.hook_out": "attn_out",
    "hook_resid_mid": "mid",
    "ln2.hook_in": "mid",
    "hook_mlp_out": "ffn_out",
    "mlp.hook_out": "ffn_out",
    "hook_out": "block_out",
    "hook_resid_post": "block_out",
}
_KEPT = ("kind", "strength", "strength_unit", "min", "max", "positions", "heads", "when")


@dataclass(frozen=True)
class Generated:
    """One answer. `str()` of it is its text."""

    text: str
    finish_reason: str | None
    tokens: list[dict[str, Any]]
    """Of each generated token its index, id, text and readings; empty without `watch`."""
    prompt: list[dict[str, Any]]
    """The same for watched tokens of the prompt."""
    interventions: list[dict[str, Any]]
    """The effect of each edit: the number of edited rows, their mean length and that of the change."""
    states: dict[int, Any] = field(default_factory=dict)
    """By layer, float32 [rows, hidden], if requested."""
    rows: Any = None
    """Token indices of the rows in `states`; a generated token was predicted at the row before its own."""
    token_ids: Any = None
    """Ids at these indices."""

    def __str__(self) -> str:
        return self.text


def generate(
    model: ServingModel,
    prompt: str | Sequence[Mapping[str, Any]],
    edits: Iterable[Mapping[str, Any]],
    watch: Mapping[str, Any] | None,
    states: Sequence[int],
    request: Mapping[str, Any],
) -> list[Generated]:
    wanted = dict(watch or {})
    if states:
        layers = [int(layer) for layer in states]
        if wanted.get("layers", layers) != layers:
            raise ValueError("states and watch's layers are the same list; give one of them.")
        wanted.update(layers=layers, states=True)
    with _live(model, list(edits)) as interventions:
        tapline: dict[str, Any] = {}
        if interventions:
            tapline["interventions"] = interventions
        if wanted:
            tapline["watch"] = wanted
        if isinstance(prompt, str):
            choices = model.complete(prompt, tapline=tapline or None, **request)
        else:
            choices = model.chat(prompt, tapline=tapline or None, **request)
    return [_answer(model, choice) for choice in choices]


def _answer(model: ServingModel, choice: Mapping[str, Any]) -> Generated:
    read = choice.get("tapline", {})
    text = choice["text"] if "text" in choice else choice["message"]["content"]
    kept: dict[str, Any] = {}
    if "capture" in read:
        identifier = read["capture"]["id"]
        capture = model.capture(identifier)
        kept = {"states": capture.layers, "rows": capture.rows, "token_ids": capture.token_ids}
        model.remove_capture(identifier)
    return Generated(
        text=text or "",
        finish_reason=choice.get("finish_reason"),
        tokens=read.get("tokens", []),
        prompt=read.get("prompt", []),
        interventions=read.get("interventions", []),
        **kept,
    )


@contextmanager
def _live(model: ServingModel, edits: Sequence[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Edits as live requests take them. Arrays are stored under temporary names until the request has ended."""
    stored: list[str] = []
    try:
        yield [_intervention(model, edit, stored) for edit in edits]
    finally:
        for name in stored:
            model.remove_vector(name)


def _intervention(model: ServingModel, edit: Mapping[str, Any], stored: list[str]) -> dict[str, Any]:
    if edit.get("sequences") is not None:
        raise ValueError("An edit of a generated answer has no sequences: it applies to its request.")
    found = {name: edit[name] for name in _KEPT if name in edit}
    layers: list[int] | None = None
    if "at" in edit:
        point, layer = _place(str(edit["at"]))
        if layer == "*":
            raise ValueError(f"{edit['at']}: name one block, or several edits.")
        layers = [int(layer)]
        found.update(layer=layers[0], point=point)
    else:
        found.update({name: edit[name] for name in ("layer", "layers", "point") if name in edit})
        layers = found.get("layers") or ([found["layer"]] if "layer" in found else None)
    vector = edit.get("vector")
    if isinstance(vector, Mapping) and "base64" in vector:
        import base64

        import numpy as np

        if not layers:
            raise ValueError("An edit with an array needs a layer.")
        values = np.frombuffer(base64.b64decode(vector["base64"]), "<f4")
        name = f"tmp-{uuid.uuid4().hex}"
        model.put_vector(name, {layer: values for layer in layers})
        stored.append(name)
        found["vector"] = name
    elif vector is not None:
        found["vector"] = vector
    return found


def _place(name: str) -> tuple[str, str]:
    """Point and block of a name in either form."""
    ours = re.fullmatch(r"([a-z_]+)\.([0-9]+|\*)", name)
    if ours is not None:
        return ours.group(1), ours.group(2)
    theirs = re.fullmatch(r"blocks\.([0-9]+|\*)\.(.+)", name)
    if theirs is not None and theirs.group(2) in _HOOKS:
        return _HOOKS[theirs.group(2)], theirs.group(1)
    raise TaplineError(f"{name} is not a point of a block that can be changed.")
