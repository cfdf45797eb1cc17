"""Three tools that people look into transformers with, behind one small interface, by their public functions only.

A peer answers `run(tokens, edit)`: block outputs before any edit, float32 [blocks, tokens, width], and the logits of
every token. `edit` is (block, first row, function of the rows from that row on). `lens(rows)` is the model's final norm
and head.
"""
import numpy as np
import torch


def edited(output, first, change):
    """A copy of a block's output, [1, tokens, width], with the rows from `first` on changed."""
    output = output.clone()
    output[0, first:] = change(output[0, first:])
    return output


class Transformers:
    """Hugging Face transformers, eager attention: output_hidden_states, and hooks on the blocks."""

    def __init__(self, folder):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
        self.model.eval()

    def run(self, tokens, edit=None):
        inner, last, handles = self.model.model, [], []
        # hidden_states ends with the normalised output; the last block's own one is what goes into the final norm.
        handles.append(inner.norm.register_forward_pre_hook(lambda _, inputs: last.append(inputs[0])))
        clean = {}
        if edit is not None:
            block, first, change = edit

            def hook(_, __, output):
                plain = output[0] if isinstance(output, tuple) else output
                clean[block] = plain
                new = edited(plain, first, change)
                return (new, *output[1:]) if isinstance(output, tuple) else new

            handles.append(inner.layers[block].register_forward_hook(hook))
        try:
            found = self.model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
        finally:
            for handle in handles:
                handle.remove()
        states = [*found.hidden_states[1:-1], last[0]]
        for block, plain in clean.items():
            states[block] = plain
        return torch.stack([state[0] for state in states]), found.logits[0]

    def points(self, tokens):
        """attn_out, mid, ffn_in and ffn_out, [blocks, tokens, width] each: the outputs of the two halves, and the input
        and output of the second one's norm."""
        found = {"attn_out": [], "mid": [], "ffn_in": [], "ffn_out": []}

        def keep(name):
            def hook(_, inputs, output=None):
                value = inputs[0] if output is None else output[0] if isinstance(output, tuple) else output
                found[name].append(value[0])

            return hook

        handles = []
        for layer in self.model.model.layers:
            # Gemma 3 normalises what its halves hand back before it is added.
            normed = hasattr(layer, "post_feedforward_layernorm")
            attention = layer.post_attention_layernorm if normed else layer.self_attn
            middle = layer.pre_feedforward_layernorm if normed else layer.post_attention_layernorm
            mlp = layer.post_feedforward_layernorm if normed else layer.mlp
            handles.append(attention.register_forward_hook(keep("attn_out")))
            handles.append(middle.register_forward_pre_hook(keep("mid")))
            handles.append(middle.register_forward_hook(keep("ffn_in")))
            handles.append(mlp.register_forward_hook(keep("ffn_out")))
        try:
            self.model(torch.tensor([tokens]), use_cache=False)
        finally:
            for handle in handles:
                handle.remove()
        return {name: torch.stack(rows).numpy() for name, rows in found.items()}

    def attention(self, tokens, blocks):
        """Weights after the softmax, [heads, tokens, tokens] of each of these blocks."""
        found = self.model(torch.tensor([tokens]), output_attentions=True, use_cache=False).attentions
        return [found[block][0].numpy() for block in blocks]

    def lens(self, rows):
        return self.model.lm_head(self.model.model.norm(rows))


class TransformerLens:
    """TransformerLens 4's bridge: run_with_cache and run_with_hooks."""

    def __init__(self, folder):
        from transformer_lens.model_bridge import TransformerBridge

        self.model = TransformerBridge.boot_transformers(folder, device="cpu", dtype=torch.float32)
        self.tokenizer = self.model.tokenizer
        self.blocks = self.model.cfg.n_layers

    def run(self, tokens, edit=None):
        names = [f"blocks.{block}.hook_out" for block in range(self.blocks)]
        states = {}

        def keep(value, hook):
            states[hook.name] = value[0] if isinstance(value, tuple) else value

        hooks = [(name, keep) for name in names]
        if edit is not None:
            block, first, change = edit
            hooks.append((names[block], lambda value, hook: edited(value, first, change)))
        logits = self.model.run_with_hooks(torch.tensor([tokens]), fwd_hooks=hooks)
        return torch.stack([states[name][0] for name in names]), logits[0]

    def points(self, tokens):
        names = {
            "attn_out": "hook_attn_out",
            "mid": "hook_resid_mid",
            "ffn_in": "mlp.hook_in",
            "ffn_out": "hook_mlp_out",
        }
        wanted = {f"blocks.{block}.{hook}" for block in range(self.blocks) for hook in names.values()}
        _, cache = self.model.run_with_cache(torch.tensor([tokens]), names_filter=lambda name: name in wanted)

        def rows(hook):
            return torch.stack([cache[f"blocks.{block}.{hook}"][0] for block in range(self.blocks)]).numpy()

        return {name: rows(hook) for name, hook in names.items()}

    def attention(self, tokens, blocks):
        names = [f"blocks.{block}.attn.hook_pattern" for block in blocks]
        _, cache = self.model.run_with_cache(torch.tensor([tokens]), names_filter=lambda name: name in names)
        return [cache[name][0].numpy() for name in names]

    def lens(self, rows):
        return self.model.unembed(self.model.ln_final(rows[None]))[0]


class NNsight:
    """nnsight: a trace whose blocks are saved and written to."""

    def __init__(self, folder):
        from nnsight import LanguageModel

        self.model = LanguageModel(folder, dtype=torch.float32, attn_implementation="eager", dispatch=True)
        self.tokenizer = self.model.tokenizer

    def run(self, tokens, edit=None):
        import nnsight

        model = self.model
        chosen, first, change = edit if edit is not None else (-1, 0, None)
        with model.trace(torch.tensor([tokens])):
            states = nnsight.save([])
            for index, block in enumerate(model.model.layers):
                output = block.output
                states.append(output.clone())
                if index == chosen:
                    block.output = edited(output, first, change)
            logits = nnsight.save(model.lm_head.output)
        return torch.stack([state.reshape(len(tokens), -1) for state in states]), logits.reshape(len(tokens), -1)

    def lens(self, rows):
        return self.model.lm_head._module(self.model.model.norm._module(rows))


PEERS = {"transformers": Transformers, "transformer-lens": TransformerLens, "nnsight": NNsight}


def intervention(kind, strength, vector):
    """The contract's definition for a row, in its own words and not as an affine form."""
    if kind == "scale":
        return lambda h: h * strength
    if kind == "ablate":
        return lambda h: h - strength * h
    if kind == "patch":
        return lambda h: h + strength * (vector - h)
    if kind == "steer":
        return lambda h: h + strength * vector / torch.linalg.vector_norm(vector)
    raise SystemExit(f"Unknown intervention {kind}.")


def distance(a, b):
    """Relative L2 of the whole."""
    return float(np.linalg.norm((a - b).astype(np.float64)) / np.linalg.norm(b.astype(np.float64)))
