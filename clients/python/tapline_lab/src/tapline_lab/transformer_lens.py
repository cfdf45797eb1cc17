"""TransformerLens on a GGUF: `boot` returns a RemoteBridge whose passes run in tapline. See docs/transformer-lens.md.

Requires transformer-lens 4.3 or newer and PyTorch: pip install 'tapline-lab[transformer-lens]'.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

from ._driver import Driver, Hook
from ._errors import TaplineError
from ._hook_points import find_hooks
from ._model import Model, load
from ._tokenizer import Tokenizer

try:
    import torch
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.factories.architecture_adapter_factory import (
        SUPPORTED_ARCHITECTURES,
        ArchitectureAdapterFactory,
    )
    from transformer_lens.hook_points import HookPoint
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.model_bridge.bridge_core import BridgeCore
    from transformer_lens.model_bridge.driver_protocol import to_torch
    from transformer_lens.model_bridge.remote_bridge import RemoteBridge
except ImportError as error:
    raise TaplineError(
        f"TransformerLens 4.3 or newer is needed ({error}): pip install 'tapline-lab[transformer-lens]'."
    ) from error

# llama.cpp's architectures: TransformerLens's adapter, and the activation function.
ARCHITECTURES = {
    "bloom": ("BloomForCausalLM", "gelu"),
    "cohere2": ("Cohere2ForCausalLM", "silu"),
    "command-r": ("CohereForCausalLM", "silu"),
    "exaone": ("ExaoneForCausalLM", "silu"),
    "falcon": ("FalconForCausalLM", "gelu"),
    "gemma": ("GemmaForCausalLM", "gelu_pytorch_tanh"),
    "gemma2": ("Gemma2ForCausalLM", "gelu_pytorch_tanh"),
    "gemma3": ("Gemma3ForCausalLM", "gelu_pytorch_tanh"),
    "glm4": ("Glm4ForCausalLM", "silu"),
    "gpt2": ("GPT2LMHeadModel", "gelu_new"),
    "gptj": ("GPTJForCausalLM", "gelu_new"),
    "gptneox": ("GPTNeoXForCausalLM", "gelu"),
    "granite": ("GraniteForCausalLM", "silu"),
    "internlm2": ("InternLM2ForCausalLM", "silu"),
    "llama": ("LlamaForCausalLM", "silu"),
    "mpt": ("MptForCausalLM", "gelu"),
    "nemotron": ("NemotronForCausalLM", "relu2"),
    "olmo": ("OlmoForCausalLM", "silu"),
    "olmo2": ("Olmo2ForCausalLM", "silu"),
    "olmoe": ("OlmoeForCausalLM", "silu"),
    "phi2": ("PhiForCausalLM", "gelu_new"),
    "phi3": ("Phi3ForCausalLM", "silu"),
    "qwen2": ("Qwen2ForCausalLM", "silu"),
    "qwen2moe": ("Qwen2MoeForCausalLM", "silu"),
    "qwen3": ("Qwen3ForCausalLM", "silu"),
    "qwen3moe": ("Qwen3MoeForCausalLM", "silu"),
    "smollm3": ("SmolLM3ForCausalLM", "silu"),
    "stablelm": ("StableLmForCausalLM", "silu"),
    "starcoder2": ("Starcoder2ForCausalLM", "gelu_pytorch_tanh"),
}


def boot(model: Model | str, *, architecture: str | None = None, tokenizer: Any = None, **options: Any) -> Bridge:
    """A TransformerLens bridge on a served model.

    `model`: from `load` or `connect`, or what `load` takes, with its `options`; then the bridge's `close` ends the
    server. `architecture`: the TransformerLens adapter, by default that of the GGUF's architecture. `tokenizer`: a
    transformers tokenizer instead of the server's own.

    Raises TaplineError if TransformerLens has no adapter for the model.
    """
    owned = isinstance(model, str)
    served = load(model, **options) if isinstance(model, str) else model
    try:
        config = _config(served, architecture)
        adapter = ArchitectureAdapterFactory.select_architecture_adapter(config)
        names = _hook_names(adapter, served.n_layers)
        aliases = _aliases(adapter, names)
        chosen = tokenizer if tokenizer is not None else Tokenizer(served)
        driver = Driver(
            served,
            find_hooks(served, names, aliases),
            architecture=config.architecture,
            bridge_config=adapter.cfg,
            tokenizer=chosen,
            other_hooks=names,
            eps=adapter.cfg.eps,
            owned=owned,
        )
        # Aliases of hooks that do not fire; the others resolve.
        dead = {alias for alias, name in aliases.items() if name in driver.non_fireable_hook_points}
        driver.non_fireable_hook_points |= dead - driver.supported_hook_points
        return Bridge(adapter, chosen, driver)
    except BaseException:
        if owned:
            served.close()
        raise


class Bridge(RemoteBridge):
    """A RemoteBridge that can do what other engines' cannot: hooks that change activations, and `stop_at_layer`.

    A hook function that returns another tensor, or changes its own, is an edit: the pass is run again from there, so
    that a call takes one pass more per hook point that is changed.
    """

    def __init__(self, adapter: Any, tokenizer: Any, driver: Driver) -> None:
        super().__init__(adapter, tokenizer, driver)
        self._model = driver.model
        self._hooks: Mapping[str, Hook] = driver.hooks
        self._stop: int | None = None
        self.blocks = [_Block(driver.model, layer) for layer in range(driver.model.n_layers)]
        self.ln_final = _FinalNorm(driver.model, self.cfg.eps)

    # Text; the same functions as in TransformerBridge, on `to_tokens`.
    to_string = TransformerBridge.to_string
    to_str_tokens = TransformerBridge.to_str_tokens
    to_single_token = TransformerBridge.to_single_token
    to_single_str_token = TransformerBridge.to_single_str_token
    get_token_position = TransformerBridge.get_token_position
    tokens_to_residual_directions = TransformerBridge.tokens_to_residual_directions

    def to_tokens(
        self,
        input: str | list[str],
        prepend_bos: bool | None = None,
        padding_side: str | None = None,
        truncate: bool = True,
        **_: Any,
    ) -> torch.Tensor:
        """Token ids, [batch, tokens]; texts of different lengths are padded."""
        return self._padded(self._encoded(input, prepend_bos, truncate), padding_side)[0]

    def forward(
        self,
        input: Any = None,
        *,
        return_type: str | None = "logits",
        loss_per_token: bool = False,
        labels: Any = None,
        prepend_bos: bool | None = None,
        padding_side: str | None = None,
        stop_at_layer: int | None = None,
        input_ids: Any = None,
        attention_mask: Any = None,
        intervene: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs a text, a list of texts or token ids; see RemoteBridge.forward. `intervene`: see Driver.forward.

        With `stop_at_layer` it returns the residual stream before that block, [batch, tokens, hidden].
        """
        self._reject_start_at_layer(kwargs.pop("start_at_layer", None))
        tokens = input if input is not None else input_ids
        if isinstance(tokens, str) or (isinstance(tokens, list) and tokens and isinstance(tokens[0], str)):
            tokens, mask = self._padded(self._encoded(tokens, prepend_bos, True), padding_side)
            attention_mask = attention_mask if attention_mask is not None else mask
        tokens = torch.as_tensor(tokens)
        tokens = tokens[None] if tokens.ndim == 1 else tokens
        stop = self._stop if stop_at_layer is None else self._resolved(stop_at_layer)
        fixed = {"attention_mask": attention_mask, **kwargs}
        if stop is not None:
            return self._run(tokens, stop, intervene, fixed)[1]
        logits, _ = self._run(tokens, None, intervene, fixed, return_type is not None)
        return self._finalize_return(
            return_type,
            logits,
            tokens,
            attention_mask=None if attention_mask is None else torch.as_tensor(attention_mask),
            labels=None if labels is None else torch.as_tensor(labels),
            loss_per_token=loss_per_token,
        )

    __call__ = forward

    def run_with_hooks(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        """See TransformerBridge.run_with_hooks; functions may change activations, except attention patterns."""
        if kwargs.get("bwd_hooks") or (len(args) > 1 and args[1]):
            raise NotImplementedError("tapline has no backward pass; bwd_hooks are not possible.")
        return BridgeCore.run_with_hooks(self, input, *args, **kwargs)

    def run_with_cache(self, *args: Any, stop_at_layer: int | None = None, **kwargs: Any) -> Any:
        """See TransformerBridge.run_with_cache."""
        self._reject_start_at_layer(kwargs.get("start_at_layer"))
        if kwargs.get("incl_bwd"):
            raise NotImplementedError("tapline has no backward pass; incl_bwd is not possible.")
        self._stop = None if stop_at_layer is None else self._resolved(stop_at_layer)
        try:
            return BridgeCore.run_with_cache(self, *args, stop_at_layer=self._stop, **kwargs)
        finally:
            self._stop = None

    def generate(
        self,
        input: Any,
        max_new_tokens: int = 10,
        *,
        intervene: Mapping[str, Any] | None = None,
        prepend_bos: bool | None = None,
    ) -> Any:
        """Continues greedily. Texts give texts, up to the end of text; token ids give all token ids."""
        is_text = isinstance(input, str) or (isinstance(input, list) and bool(input) and isinstance(input[0], str))
        rows = self._encoded(input, prepend_bos, True) if is_text else torch.atleast_2d(torch.as_tensor(input)).tolist()
        found = self._driver.forward(rows, intervene=intervene, max_new_tokens=max_new_tokens).new_tokens.tolist()
        if not is_text:
            return torch.tensor([[*row, *new] for row, new in zip(rows, found)])
        end = self.tokenizer.eos_token_id
        whole = [[*row, *(new[: new.index(end)] if end in new else new)] for row, new in zip(rows, found)]
        texts = [self.tokenizer.decode(row, skip_special_tokens=True) for row in whole]
        return texts[0] if isinstance(input, str) else texts

    # Weights, dequantised by the server; see Weights in tapline_lab.

    @property
    def W_E(self) -> torch.Tensor:
        return torch.from_numpy(self._model.W_E)

    @property
    def W_U(self) -> torch.Tensor:
        return torch.from_numpy(self._model.W_U)

    @property
    def b_U(self) -> torch.Tensor:
        if "output.bias" in self._model.tensors:
            return torch.from_numpy(self._model.weight("output.bias"))
        return torch.zeros(self.cfg.d_vocab)

    @property
    def W_O(self) -> torch.Tensor:
        return torch.stack([block.attn.W_O for block in self.blocks])

    @property
    def W_V(self) -> torch.Tensor:
        return torch.stack([block.attn.W_V for block in self.blocks])

    def unembed(self, normalized: torch.Tensor) -> torch.Tensor:
        """Logits of what the final norm returns."""
        return normalized @ self.W_U + self.b_U

    def _run(
        self,
        tokens: torch.Tensor,
        stop: int | None,
        intervene: Mapping[str, Any] | None,
        fixed: Mapping[str, Any],
        wants_logits: bool = True,
    ) -> tuple[Any, Any]:
        """Logits and, with `stop`, the residual stream there. Calls the hooks in the order of computation."""
        specs = {name: [spec] if isinstance(spec, Mapping) else spec for name, spec in (intervene or {}).items()}
        specs = {self._canonical(name): list(spec) for name, spec in specs.items()}
        pending = [name for name, hook in self._hooks.items() if self._hook_registry[name].fwd_hooks]
        end = None
        if stop is not None:
            end = f"blocks.{stop}.hook_in" if stop < self.cfg.n_layers else f"blocks.{stop - 1}.hook_out"
            before = {name for name in pending if self._hooks[name].order < (stop, 0) and name != "unembed.hook_out"}
            pending = [name for name in pending if name in before or name == end]
        while True:
            result = self._driver.forward(
                tokens,
                capture=tuple(dict.fromkeys([*pending, *([] if end is None else [end])])),
                intervene=specs,
                stop_at_layer=None if stop is None or stop >= self.cfg.n_layers else max(stop, 1),
                return_logits=wants_logits and stop is None,
                **fixed,
            )
            logits = None if result.logits is None else to_torch(result.logits)
            changed = False
            for index, name in enumerate(pending):
                given = to_torch(result.captured[name])
                # A copy, because functions may write into what they are given.
                found = self._hook_registry[name](given.clone())
                if name == "unembed.hook_out":
                    logits = found
                    continue
                edits = self._changes(name, given, found)
                if edits:
                    specs[name] = [*specs.get(name, []), *edits]
                    pending, changed = pending[index + 1 :], True
                    break
            if not changed:
                return logits, None if end is None else to_torch(result.captured[end])

    def _changes(self, name: str, given: torch.Tensor, found: Any) -> list[dict[str, Any]]:
        """The changes of a hook function as edits: equal rows are one edit."""
        if not isinstance(found, torch.Tensor) or found.shape != given.shape:
            shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise ValueError(f"A hook at {name} must return a tensor of shape {tuple(given.shape)}, got {shape}.")
        if torch.equal(given, found):
            return []
        if self._hooks[name].width == 0:
            raise NotImplementedError(f"A hook changed {name}, which tapline can only read.")
        rows = found.detach().to(torch.float32).flatten(2)
        groups: dict[bytes, dict[int, list[int]]] = {}
        for sequence, position in (given.flatten(2) != rows).any(-1).nonzero().tolist():
            key = rows[sequence, position].numpy().tobytes()
            groups.setdefault(key, {}).setdefault(sequence, []).append(position)
        edits = []
        for of_sequence in groups.values():
            for positions in {tuple(positions) for positions in of_sequence.values()}:
                where = [sequence for sequence, at in of_sequence.items() if tuple(at) == positions]
                row = rows[where[0], positions[0]]
                spec = {"op": "set", "value": row} if row.any() else {"op": "suppress"}
                edits.append({**spec, "pos": list(positions), "sequences": where})
        return edits

    def _canonical(self, name: str) -> str:
        if name in self._hook_registry:
            return name
        hook = self.hook_dict.get(name)
        self._check_hook_fireable(name)
        if hook is None or hook.name is None:
            raise KeyError(f"Hook name {name!r} does not exist on this model.")
        return str(hook.name)

    def _resolved(self, stop_at_layer: int) -> int:
        layers = self.cfg.n_layers
        stop = stop_at_layer + layers if stop_at_layer < 0 else stop_at_layer
        if not 0 <= stop <= layers:
            raise ValueError(f"stop_at_layer must be at most {layers}, or negative from the end, got {stop_at_layer}.")
        return int(stop)

    def _encoded(self, texts: str | list[str], prepend_bos: bool | None, truncate: bool) -> list[list[int]]:
        prepend = self.cfg.default_prepend_bos if prepend_bos is None else prepend_bos
        bos = self.tokenizer.bos_token_id
        given = [texts] if isinstance(texts, str) else texts
        rows: list[list[int]] = self.tokenizer(given, add_special_tokens=False)["input_ids"]
        rows = [[bos, *row] if prepend and bos is not None else list(row) for row in rows]
        return [row[: self.cfg.n_ctx] for row in rows] if truncate else rows

    def _padded(self, rows: list[list[int]], side: str | None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Tokens and, where there is padding, its mask."""
        length = max(map(len, rows))
        left = (side or self.tokenizer.padding_side) == "left"
        filler = self.tokenizer.pad_token_id or 0
        padded, masks = [], []
        for row in rows:
            padding = [filler] * (length - len(row))
            padded.append([*padding, *row] if left else [*row, *padding])
            masks.append([0] * len(padding) + [1] * len(row) if left else [1] * len(row) + [0] * len(padding))
        uneven = any(len(row) != length for row in rows)
        return torch.tensor(padded), torch.tensor(masks) if uneven else None


class _Attention:
    """The weights of a block's attention, as ActivationCache reads them."""

    def __init__(self, model: Model, layer: int) -> None:
        self._model, self._layer = model, layer

    @property
    def W_O(self) -> torch.Tensor:
        return torch.from_numpy(self._model.W_O[self._layer])

    @property
    def W_V(self) -> torch.Tensor:
        return torch.from_numpy(self._model.W_V[self._layer])


class _Block:
    def __init__(self, model: Model, layer: int) -> None:
        self.attn = _Attention(model, layer)


class _FinalNorm:
    """The norm before the unembedding, on any rows."""

    def __init__(self, model: Model, eps: float) -> None:
        self._model, self._eps = model, eps
        self._is_rms = model.hyperparameter("attention.layer_norm_rms_epsilon") is not None

    @property
    def weight(self) -> torch.Tensor:
        """The factors as applied, [hidden]."""
        return torch.from_numpy(self._model.final_norm)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        centred = rows if self._is_rms else rows - rows.mean(-1, keepdim=True)
        normalized = centred / (centred.pow(2).mean(-1, keepdim=True) + self._eps).sqrt()
        scaled = normalized * self.weight
        if "output_norm.bias" in self._model.tensors:
            scaled = scaled + torch.from_numpy(self._model.weight("output_norm.bias"))
        return scaled


def _config(model: Model, architecture: str | None) -> Any:
    """TransformerLens's configuration, from the GGUF's metadata."""
    family = str(model.metadata["general.architecture"])
    usual, activation = ARCHITECTURES.get(family, (None, "unknown"))
    name = architecture or usual
    if name is None or name not in SUPPORTED_ARCHITECTURES:
        raise TaplineError(f"TransformerLens has no known adapter for {name or family}; pass architecture=….")
    heads = int(model.hyperparameter("attention.head_count") or 0)
    if heads == 0:
        raise TaplineError(f"The file has no single number of attention heads ({family}), which TransformerLens needs.")
    rms, plain = (model.hyperparameter(f"attention.layer_norm_{kind}epsilon") for kind in ("rms_", ""))
    eps = rms if rms is not None else plain
    experts = model.hyperparameter("expert_count")
    config = TransformerBridgeConfig(
        d_model=model.hidden_size,
        d_head=int(model.hyperparameter("attention.key_length", model.hidden_size // heads)),
        n_layers=model.n_layers,
        n_ctx=int(model.info["forward"]["sequence_tokens"]),
        n_heads=heads,
        n_key_value_heads=int(model.hyperparameter("attention.head_count_kv", heads)),
        d_vocab=model.tensors["token_embd.weight"][0],
        d_mlp=int(model.hyperparameter("feed_forward_length") or 0) or None,
        act_fn=activation,
        architecture=name,
        model_name=model.name,
        eps=1e-5 if eps is None else round(float(eps), 12),  # float32 in the file
        normalization_type="LN" if rms is None else "RMS",
        gated_mlp="blk.0.ffn_gate.weight" in model.tensors,
        tie_word_embeddings="output.weight" not in model.tensors,
        num_experts=None if experts is None else int(experts),
        tokenizer_prepends_bos=True,
    )
    for field, key in (
        ("output_logits_soft_cap", "final_logit_softcapping"),
        ("attn_scores_soft_cap", "attn_logit_softcapping"),
    ):
        if model.hyperparameter(key) is not None:
            setattr(config, field, float(model.hyperparameter(key)))
    return config


def _hook_names(adapter: Any, layers: int) -> set[str]:
    """Every canonical hook name of the architecture."""
    found: set[str] = set()

    def walk(component: Any, path: str) -> None:
        found.update(f"{path}.{name}" for name, part in component._modules.items() if isinstance(part, HookPoint))
        for name, part in (getattr(component, "submodules", None) or {}).items():
            walk(part, f"{path}.{name}")

    for name, component in adapter.component_mapping.items():
        walk(component, name)
    return {
        name.replace("blocks.", f"blocks.{layer}.", 1)
        for name in found
        for layer in (range(layers) if name.startswith("blocks.") else range(1))
    }


def _aliases(adapter: Any, names: Iterable[str]) -> dict[str, str]:
    """Canonical names by alias, as the bridge resolves them."""
    templates = BridgeCore.__new__(BridgeCore)._collect_component_aliases(adapter.component_mapping)
    pairs = BridgeCore._compute_hook_aliases_cached(tuple(sorted(names)), tuple(sorted(templates.items())))
    return dict(pairs)


class _CallableModule(types.ModuleType):
    """Lets `tapline_lab.transformer_lens(model)` be `boot` while the module can be imported."""

    def __call__(self, model: Model | str, **options: Any) -> Bridge:
        return boot(model, **options)


sys.modules[__name__].__class__ = _CallableModule
