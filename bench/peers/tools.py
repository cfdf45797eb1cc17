"""The tools that tapline is timed beside, by their public functions and each in the way that serves it best.

    capture(tokens, layers)        block outputs of every token, and the logits after the last one
    extract(texts, layer)          one block's outputs of every token of many texts, 32 texts a batch
    compare(tokens, edit, batched) greedy continuations under every strength of one steering vector: a run for each, as
                                   each tool's guide shows it, or all in one batch, as one writes it by hand
    generate(tokens, count)        a greedy continuation
    forward(batch, layers)         block outputs of every token of prompts of one length, and the logits after each

Attention is what each tool chooses by itself. A steering vector is added to the last row of the prompt and to every row
after it, as tapline does by default.
"""
import contextlib

import torch

BATCH = 32


def device():
    """Where every tool computes: as tool.py's own tensors."""
    return torch.get_default_device().type


def by_length(texts):
    """Batches of texts of like length, so that padding costs little: indices, ids, mask."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        longest = max(len(texts[i]) for i in chosen)
        ids = torch.zeros(len(chosen), longest, dtype=torch.long)
        mask = torch.zeros(len(chosen), longest, dtype=torch.long)
        for row, i in enumerate(chosen):
            ids[row, : len(texts[i])] = torch.tensor(texts[i])
            mask[row, : len(texts[i])] = 1
        yield chosen, ids, mask


def unpadded(texts, layer, run):
    rows = [None] * len(texts)
    for chosen, ids, mask in by_length(texts):
        states = run(ids, mask, layer)
        for row, i in enumerate(chosen):
            rows[i] = states[row, : len(texts[i])].clone()
    return rows


class Tool:
    """Parts that all of them share: each strength by itself, or strengths as rows of one batch."""

    def extract(self, texts, layer):
        return unpadded(texts, layer, self.batch_states)

    def compare(self, tokens, layer, vector, strengths, count, batched):
        if batched:
            ids = torch.tensor([tokens] * len(strengths))
            factors = torch.tensor(strengths)[:, None, None]
            return self.steered(ids, layer, factors * vector, count).tolist()
        ids = torch.tensor([tokens])
        return [self.steered(ids, layer, strength * vector, count)[0].tolist() for strength in strengths]

    def generate(self, tokens, count):
        return self.steered(torch.tensor([tokens]), 0, None, count)[0].tolist()


class Transformers(Tool):
    """Hugging Face transformers: output_hidden_states, generate, a hook on a block."""

    def __init__(self, folder):
        from transformers import AutoModelForCausalLM

        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device()).eval()

    def capture(self, tokens, layers):
        found = self.model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False, logits_to_keep=1)
        return [found.hidden_states[layer + 1][0] for layer in layers], found.logits[0, -1]

    def forward(self, batch, layers):
        found = self.model(torch.tensor(batch), output_hidden_states=True, use_cache=False, logits_to_keep=1)
        return [found.hidden_states[layer + 1] for layer in layers], found.logits[:, -1]

    def batch_states(self, ids, mask, layer):
        found = self.model.model(ids, attention_mask=mask, output_hidden_states=True, use_cache=False)
        return found.hidden_states[layer + 1]

    def steered(self, ids, layer, change, count):
        def hook(_, __, output):
            plain = output[0] if isinstance(output, tuple) else output
            plain[:, -1:] += change

        block = self.model.model.layers[layer]
        handle = contextlib.nullcontext() if change is None else block.register_forward_hook(hook)
        with handle:
            found = self.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False
            )
        return found[:, ids.shape[1] :]


class TransformerLens(Tool):
    """TransformerLens 4's bridge: run_with_cache, generate, hooks."""

    def __init__(self, folder):
        from transformer_lens.model_bridge import TransformerBridge

        self.model = TransformerBridge.boot_transformers(folder, device=device(), dtype=torch.float32)

    def capture(self, tokens, layers):
        names = [f"blocks.{layer}.hook_out" for layer in layers]
        logits, cache = self.model.run_with_cache(torch.tensor([tokens]), names_filter=names, logits_to_keep=1)
        return [cache[name][0] for name in names], logits[0, -1]

    def forward(self, batch, layers):
        names = [f"blocks.{layer}.hook_out" for layer in layers]
        logits, cache = self.model.run_with_cache(torch.tensor(batch), names_filter=names, logits_to_keep=1)
        return [cache[name] for name in names], logits[:, -1]

    def batch_states(self, ids, mask, layer):
        name = f"blocks.{layer}.hook_out"
        _, cache = self.model.run_with_cache(
            ids, names_filter=[name], attention_mask=mask, stop_at_layer=layer + 1
        )
        return cache[name]

    def steered(self, ids, layer, change, count):
        def add(value, hook):
            value[:, -1:] += change
            return value

        hooks = [] if change is None else [(f"blocks.{layer}.hook_out", add)]
        with self.model.hooks(fwd_hooks=hooks):
            found = self.model.generate(ids, max_new_tokens=count, do_sample=False, verbose=False)
        return found[:, ids.shape[1] :]


    def patch(self, clean, corrupted, target, foil):
        """[layers, tokens] logit differences: `transformer_lens.patching`, a run for each site."""
        from transformer_lens import patching

        _, cache = self.model.run_with_cache(torch.tensor([clean]))
        return patching.generic_activation_patch(
            self.model,
            torch.tensor([corrupted]),
            cache,
            lambda logits: logits[0, -1, target] - logits[0, -1, foil],
            patching.layer_pos_patch_setter,
            "resid_post",
            ("layer", "pos"),
        )


class NNsight(Tool):
    """nnsight: traces that save blocks, stop behind one, or write to it at every step."""

    def __init__(self, folder):
        from nnsight import LanguageModel

        self.model = LanguageModel(folder, dtype=torch.float32, device_map=device(), dispatch=True)

    def capture(self, tokens, layers):
        import nnsight

        model = self.model
        with model.trace(torch.tensor([tokens]), logits_to_keep=1, use_cache=False):
            states = nnsight.save([])
            for layer in layers:
                states.append(model.model.layers[layer].output)
            logits = nnsight.save(model.lm_head.output)
        return [state.reshape(len(tokens), -1) for state in states], logits.reshape(-1)

    def forward(self, batch, layers):
        import nnsight

        model = self.model
        with model.trace(torch.tensor(batch), logits_to_keep=1, use_cache=False):
            states = nnsight.save([])
            for layer in layers:
                states.append(model.model.layers[layer].output)
            logits = nnsight.save(model.lm_head.output)
        return list(states), logits[:, -1]

    def batch_states(self, ids, mask, layer):
        import nnsight

        model = self.model
        with model.trace({"input_ids": ids, "attention_mask": mask}, use_cache=False) as tracer:
            states = nnsight.save(model.model.layers[layer].output)
            tracer.stop()
        return states

    def steered(self, ids, layer, change, count):
        import nnsight

        model = self.model
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with model.generate(inputs, max_new_tokens=count, min_new_tokens=count, do_sample=False) as tracer:
            if change is not None:
                for _ in tracer.iter[:count]:
                    output = model.model.layers[layer].output
                    output[:, -1:] += change
            found = nnsight.save(tracer.result)
        return found[:, ids.shape[1] :]


class InterpEngine(Tool):
    """interp-engine's eager backend, the one for machines without CUDA: capture, steer, generate_stream."""

    def __init__(self, folder):
        from interp_engine import load_model

        self.model = load_model(folder, backend="eager", dtype="float32", device=device())

    def capture(self, tokens, layers):
        from interp_engine import Address, capture

        points = [Address("resid_post", layer) for layer in layers]
        cache = capture(self.model, torch.tensor([tokens]), points)
        return [cache[point][0] for point in points], None

    def batch_states(self, ids, mask, layer):
        from interp_engine import Address, capture

        point = Address("resid_post", layer)
        return capture(self.model, ids, [point], attention_mask=mask)[point]

    def steered(self, ids, layer, change, count):
        from interp_engine import SteerSpec, generate_stream, steer

        if change is None:
            scope = contextlib.nullcontext()
        else:
            spec = SteerSpec(vector=change, layer=layer)
            plain = list(range(ids.shape[1] - 1))
            scope = steer(self.model, [spec], prompt_token_ids=ids, position_mask=plain)
        with scope:
            steps = generate_stream(self.model, ids, max_tokens=count, temperature=0, stop_at_eos=False)
            return torch.tensor([[step.token_id for step in steps]])

    # generate_stream takes one row.
    batches = False


TOOLS = {
    "transformers": Transformers,
    "TransformerLens": TransformerLens,
    "nnsight": NNsight,
    "interp-engine": InterpEngine,
}
