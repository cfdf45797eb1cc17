"""TransformerLens 4's bridge: `run_with_hooks`, `run_with_cache`, `generate` under hooks."""

import torch

from engines.torch_rows import answers, changed, first_of, grouped, padded, quiet
from suite.engine import Engine, NotOffered

HOOKS = {"block_out": "hook_out", "attn_out": "hook_attn_out", "ffn_out": "hook_mlp_out", "attention": "attn.hook_pattern"}


class Adapter(Engine):
    package = "transformer-lens"

    def __init__(self, files, chunk=None, draft=False):
        if files.form != "F32":
            raise NotOffered("The bridge loads Hugging Face models; GGUF files are for its drivers.")
        if chunk:
            raise NotOffered("A prompt is one pass.")
        if draft:
            raise NotOffered("`generate` has no draft model.")
        quiet()
        from transformer_lens.model_bridge import TransformerBridge

        self.model = TransformerBridge.boot_transformers(files.folder, device="cpu", dtype=torch.float32)

    def hooks(self, edits, firsts, seen, capture=()):
        by_place = grouped(edits)

        def hook(place):
            done = 0

            def change(value, hook):
                nonlocal done
                if place[0] == "attention":
                    seen[place] = value
                    return value
                new = changed(first_of(value), by_place.get(place, []), firsts, done)
                done += new.shape[1]
                seen[place] = new
                return (new, *value[1:]) if isinstance(value, tuple) else new

            return change

        return [(f"blocks.{place[1]}.{HOOKS[place[0]]}", hook(place)) for place in {*by_place, *capture}]

    def run(self, texts, edits=(), capture=()):
        ids, mask, firsts = padded(texts, "right")
        seen = {}
        more = {} if len(texts) == 1 else {"attention_mask": mask}
        logits = self.model.run_with_hooks(ids, fwd_hooks=self.hooks(edits, firsts, seen, capture), **more)
        return answers(texts, firsts, logits, seen)

    def generate(self, texts, count, edits=()):
        ids, mask, firsts = padded(texts, "left")
        more = {} if len(texts) == 1 else {"attention_mask": mask}
        with self.model.hooks(fwd_hooks=self.hooks(edits, firsts, {})):
            found = self.model.generate(
                ids, max_new_tokens=count, do_sample=False, stop_at_eos=False, verbose=False, **more
            )
        return found[:, ids.shape[1] :].tolist()

    def tokens(self, text):
        return self.model.to_tokens(text)[0].tolist()

    def mistakes(self):
        ids = torch.tensor([[256, 84, 104]])
        zero = lambda value, hook: value * 0  # noqa: E731
        return {
            "a block that does not exist": (
                "run_with_hooks(ids, fwd_hooks=[('blocks.99.hook_out', zero)])",
                lambda: self.model.run_with_hooks(ids, fwd_hooks=[("blocks.99.hook_out", zero)]),
            ),
            "a name that does not exist": (
                "run_with_hooks(ids, fwd_hooks=[('blocks.0.hook_oot', zero)])",
                lambda: self.model.run_with_hooks(ids, fwd_hooks=[("blocks.0.hook_oot", zero)]),
            ),
            "a name to read that does not exist": (
                "run_with_cache(ids, names_filter=['blocks.0.hook_oot'])",
                lambda: self.model.run_with_cache(ids, names_filter=["blocks.0.hook_oot"]),
            ),
            "a misspelled field": (
                "run_with_hooks(ids, fwd_hoks=[('blocks.0.hook_out', zero)])",
                lambda: self.model.run_with_hooks(ids, fwd_hoks=[("blocks.0.hook_out", zero)]),
            ),
        }
