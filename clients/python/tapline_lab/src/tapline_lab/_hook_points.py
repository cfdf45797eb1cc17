"""Which of TransformerLens's hook points a served model has, from its adapter's names and from a pass through the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ._driver import Hook
from ._errors import TaplineError

if TYPE_CHECKING:
    from ._model import Model

# Our points in the order of computation, and the alias of TransformerLens that means the same for every architecture;
# the adapter knows which hook that is, such as the norm after attention in Gemma.
_ALIASES = {
    "block_in": "hook_resid_pre",
    "attention": "attn.hook_pattern",
    "head_out": "attn.hook_z",
    "attn_out": "hook_attn_out",
    "mid": "hook_resid_mid",
    "ffn_in": "mlp.hook_in",
    "ffn_out": "hook_mlp_out",
    "block_out": "hook_resid_post",
}
# In TransformerLens a change here reaches only the norm, not the residual stream.
_READ_ONLY = {"attention", "mid"}
# Architectures that scale embeddings outside of the embedding module, after hook_embed.
_SCALED_EMBEDDINGS = {"gemma", "gemma2", "granite", "granitemoe", "minicpm", "grok"}


def find_hooks(model: Model, names: Iterable[str], aliases: Mapping[str, str]) -> dict[str, Hook]:
    """Hooks by their canonical names.

    `names`: all canonical hook names of the architecture, `aliases`: what TransformerLens calls them otherwise.
    """
    known = set(names)
    hooks: dict[str, Hook] = {}
    ranks = {point: 10 * rank for rank, point in enumerate(_ALIASES)}
    is_rms = model.hyperparameter("attention.layer_norm_rms_epsilon") is not None

    def add(name: str, hook: Hook) -> None:
        if name in known:
            hooks.setdefault(name, hook)

    def add_norm(norm: str, at: str, order: tuple[int, int]) -> None:
        """A norm's input, and what follows from it."""
        add(f"{norm}.hook_in", Hook(at, order))
        if is_rms:
            add(f"{norm}.hook_scale", Hook(at, order, read="scale"))
            add(f"{norm}.hook_normalized", Hook(at, order, read="normalized"))

    last = model.n_layers - 1
    for (point, layer), (width, heads) in _proven(model).items():
        at, order = f"{point}.{layer}", (layer, ranks[point])
        alias = f"blocks.{layer}.{_ALIASES[point]}"
        name = aliases.get(alias, alias)
        add(name, Hook(at, order, 0 if point in _READ_ONLY else width, heads))
        if point == "block_in":
            add_norm(f"blocks.{layer}.ln1", at, (layer, order[1] + 1))
            if layer == 0 and _embeds(model):
                add("embed.hook_out", Hook(at, (-1, 0), width))
        elif point == "mid" and name.endswith(".hook_in"):
            add_norm(name.removesuffix(".hook_in"), at, order)
        elif point == "block_out" and layer == last:
            add_norm("ln_final", at, (model.n_layers, 0))
    capped = ("final_logit_softcapping", "logit_scale")
    if not any(model.hyperparameter(name) for name in capped):
        add("unembed.hook_out", Hook("logits", (model.n_layers, 1)))
    return dict(sorted(hooks.items(), key=lambda entry: (entry[1].order, entry[0])))


def _proven(model: Model) -> dict[tuple[str, int], tuple[int, int]]:
    """The points that a pass returns, by block: numbers of a token, and in how many heads."""
    points = [point for point in _ALIASES if point in model.info["points"] or point == "attention"]
    wanted = [[f"{point}.*" for point in points]]
    found: dict[tuple[str, int], tuple[int, int]] = {}
    while wanted:
        names = wanted.pop()
        try:
            cache = model.run([[0]], names).cache
        except TaplineError as error:
            if error.status != 400:
                raise
            # A point that some blocks lack: each point alone, then each block alone.
            if len(names) > 1:
                wanted.extend([name] for name in names)
            elif names[0].endswith("*"):
                wanted.extend([names[0].replace("*", str(layer))] for layer in range(model.n_layers))
            continue
        for name, values in cache.items():
            point, _, layer = name.partition(".")
            shape = values.shape[2:]
            is_heads = point == "head_out"
            found[point, int(layer)] = (int(shape[0] * shape[1]), int(shape[0])) if is_heads else (int(shape[-1]), 1)
    return dict(sorted(found.items(), key=lambda entry: (entry[0][1], list(_ALIASES).index(entry[0][0]))))


def _embeds(model: Model) -> bool:
    """Whether the first block's input is the embedding module's output."""
    added = {"position_embd.weight", "token_embd_norm.weight", "per_layer_token_embd.weight"}
    if added & set(model.tensors) or model.metadata["general.architecture"] in _SCALED_EMBEDDINGS:
        return False
    return not model.hyperparameter("embedding_scale")
