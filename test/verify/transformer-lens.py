"""The bridge on a GGUF against boot_transformers on the same weights: worst relative L2 as a JSON line.

    transformer-lens.py GGUF FOLDER [small]

`small`: one prompt, without edits.
"""
import json
import re
import sys

import tapline_lab as tl
import torch
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.model_bridge.driver_protocol import Driver, validate_driver

PROMPTS = [f"The capital of {name} is" for name in ("France", "Japan", "Egypt", "Peru", "Norway", "Kenya")]
PROMPTS += [f"{who} gave the book to {whom}, because" for who, whom in (("Tom", "Ann"), ("Mary", "John"), ("I", "him"))]
PROMPTS += ["1, 2, 3, 4,", "def add(a, b):\n    return", "Once upon a time there was a"]


def distance(a, b):
    return float(torch.linalg.norm(a.double() - b.double()) / torch.linalg.norm(b.double()))


def halve_last(rows, hook):
    rows = rows.clone()
    rows[:, -1] = rows[:, -1] / 2
    return rows


def main(gguf, folder, size="whole"):
    theirs = TransformerBridge.boot_transformers(folder, device="cpu", dtype=torch.float32)
    ours = tl.transformer_lens(gguf, quiet=True)
    validate_driver(ours._driver, after_bridge_construction=True)
    assert isinstance(ours._driver, Driver)
    worst = {"differing tokens": 0, "hooks": len(ours._hook_registry)}

    def note(name, value):
        worst[name] = max(worst.get(name, 0), value)

    with torch.no_grad():
        for prompt in PROMPTS if size == "whole" else PROMPTS[:1]:
            tokens = theirs.to_tokens(prompt)
            worst["differing tokens"] += not torch.equal(tokens, ours.to_tokens(prompt))
            logits, cache = theirs.run_with_cache(tokens)
            our_logits, our_cache = ours.run_with_cache(tokens)
            note("logits", distance(our_logits, logits))
            for name in ours._hook_registry:
                note(re.sub(r"\d+", "L", name, count=1), distance(our_cache[name], cache[name]))
            for name, hook in ours._driver.hooks.items():
                if size == "whole" and hook.width and ".4." in name:
                    hooks = [(name, halve_last)]
                    edited = theirs.run_with_hooks(tokens, fwd_hooks=hooks)
                    note(f"edit at {name}", distance(ours.run_with_hooks(tokens, fwd_hooks=hooks), edited))
    ours.close()
    print(json.dumps(worst))


main(*sys.argv[1:])
