"""Hugging Face transformers: forward hooks on the model's modules; `generate` for everything with a cache.

Batches of a forward call are padded on the right, the default of tokenizers; those of `generate` on the left, as its
documentation asks.
"""

import os
from contextlib import contextmanager

import torch

from engines.torch_rows import answers, changed, first_of, grouped, padded, quiet
from suite.engine import Engine


def modules(model):
    """Modules that write to the residual stream, by (point, layer): if a norm comes last, that norm."""
    found = {}
    inner = model.base_model
    for layer, block in enumerate(inner.h if hasattr(inner, "h") else inner.layers):
        normed = hasattr(block, "post_feedforward_layernorm")
        attention = next(getattr(block, name) for name in ("attn", "attention", "self_attn") if hasattr(block, name))
        found["block_out", layer] = block
        found["attn_out", layer] = block.post_attention_layernorm if normed else attention
        found["ffn_out", layer] = block.post_feedforward_layernorm if normed else block.mlp
    return found


class Adapter(Engine):
    package = "transformers"

    def __init__(self, files, chunk=None, draft=False):
        quiet()
        from transformers import AutoModelForCausalLM, AutoTokenizer

        load = lambda path, **more: AutoModelForCausalLM.from_pretrained(  # noqa: E731
            path, dtype=torch.float32, attn_implementation="eager", **more
        ).eval()
        if files.form == "F32":
            self.model = load(files.folder)
        else:
            self.model = load(os.path.dirname(files.gguf), gguf_file=os.path.basename(files.gguf))
        self.tokenizer = AutoTokenizer.from_pretrained(files.folder)
        self.more = {"prefill_chunk_size": chunk} if chunk else {}
        if draft:
            self.more["assistant_model"] = load(files.draft)
        self.modules = modules(self.model)

    @contextmanager
    def hooks(self, edits, firsts, seen, capture=()):
        done, by_place = 0, grouped(edits)

        def before(_, inputs, options):
            nonlocal done
            cache = options.get("past_key_values")
            done = 0 if cache is None else cache.get_seq_length()

        def hook(place):
            def change(_, __, output):
                value = first_of(output)
                seen[place] = value = changed(value, by_place.get(place, []), firsts, done)
                return (value, *output[1:]) if isinstance(output, tuple) else value

            return change

        handles = [self.model.base_model.register_forward_pre_hook(before, with_kwargs=True)]
        for place in {*by_place, *(each for each in capture if each[0] != "attention")}:
            handles.append(self.modules[place].register_forward_hook(hook(place)))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def run(self, texts, edits=(), capture=()):
        ids, mask, firsts = padded(texts, "right")
        attention = any(point == "attention" for point, _ in capture)
        seen = {}
        with self.hooks(edits, firsts, seen, capture):
            found = self.model(ids, attention_mask=mask, output_attentions=attention)
        seen.update({place: found.attentions[place[1]] for place in capture if place[0] == "attention"})
        return answers(texts, firsts, found.logits, seen)

    def generate(self, texts, count, edits=()):
        ids, mask, firsts = padded(texts, "left")
        with self.hooks(edits, firsts, {}):
            found = self.model.generate(
                ids, attention_mask=mask, max_new_tokens=count, min_new_tokens=count, do_sample=False, **self.more
            )
        return found[:, ids.shape[1] :].tolist()

    def tokens(self, text):
        return self.tokenizer(text)["input_ids"]

    def mistakes(self):
        ids = torch.tensor([[256, 84, 104]])
        return {
            "a block that does not exist": ("get_submodule('layers.99')", lambda: self.modules_of("layers.99")),
            "a name that does not exist": ("get_submodule('layers.0.mpl')", lambda: self.modules_of("layers.0.mpl")),
            "a misspelled field": ("model(ids, output_hidden_state=True)", lambda: self.model(ids, output_hidden_state=True)),
            "a field of another program": (
                "model(ids, control_vectors=[{'layer': 1}])",
                lambda: self.model(ids, control_vectors=[{"layer": 1}]),
            ),
            "the same in generation": (
                "model.generate(ids, control_vectors=[1])",
                lambda: self.model.generate(ids, max_new_tokens=1, control_vectors=[1]),
            ),
        }

    def modules_of(self, name):
        return self.model.base_model.get_submodule(name)
