"""Rounds a model's linear layers to nf4 with bitsandbytes on the CPU, and runs them there.

    nf4.py REQUEST.json

The request has `model` (a GGUF file with F32 weights) and `rounded` (the same file as tapline rounds it), `places` of the
linear weights in both (name, offset, shape with the rows first), `folder` of the same model for transformers, `tokens` of a
text, and `logits`: where to write those of bitsandbytes' own layers (float32, a row per token). Prints one line of JSON: the
share of weights that tapline rounds differently, the number of layers that were replaced, and versions.
"""
import json
import sys

import bitsandbytes
import numpy as np
import torch
from bitsandbytes import functional
from transformers import AutoModelForCausalLM

BLOCK = 64


def compare(request):
    original = np.memmap(request["model"], np.uint8, "r")
    rounded = np.memmap(request["rounded"], np.uint8, "r")
    different, count, changed = 0, 0, 0
    for place in request["places"]:
        part = slice(place["offset"], place["offset"] + 4 * int(np.prod(place["shape"])))
        weight = original[part].view(np.float32).reshape(place["shape"]).copy()
        mine = rounded[part].view(np.float32).reshape(place["shape"])
        packed, state = functional.quantize_4bit(torch.from_numpy(weight), blocksize=BLOCK, quant_type="nf4")
        theirs = functional.dequantize_4bit(packed, state).numpy()
        different += int((theirs != mine).sum())
        changed += int((weight != mine).sum())
        count += weight.size
    return {"different": different / count, "changed": changed / count}


def own_logits(request):
    """What transformers computes with bitsandbytes' layers, in float32 on the CPU."""
    model = AutoModelForCausalLM.from_pretrained(request["folder"], dtype=torch.float32).eval()
    replaced = 0
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if not isinstance(child, torch.nn.Linear) or name == "lm_head":
                continue
            layer = bitsandbytes.nn.Linear4bit(
                child.in_features, child.out_features, bias=False, compute_dtype=torch.float32,
                compress_statistics=False, quant_type="nf4",
            )
            layer.load_state_dict({"weight": child.weight})
            layer = layer.to("cpu")
            if layer.weight.dtype != torch.uint8:
                layer.weight = layer.weight._quantize(torch.device("cpu"))
            assert layer.weight.dtype == torch.uint8, layer.weight.dtype
            setattr(module, name, layer)
            replaced += 1
    with torch.no_grad():
        logits = model(torch.tensor([request["tokens"]])).logits[0]
    logits.float().numpy().tofile(request["logits"])
    return replaced


def main():
    with open(sys.argv[1]) as file:
        request = json.load(file)
    found = compare(request)
    found["replaced"] = own_logits(request)
    found["versions"] = {"bitsandbytes": bitsandbytes.__version__, "torch": torch.__version__}
    print(json.dumps(found))


main()
