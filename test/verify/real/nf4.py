"""Rounds a model's linear layers to nf4 with bitsandbytes on the CPU, and runs them there.

    nf4.py REQUEST.json

The request has `model` (a GGUF file with F32 weights), `places` of the linear weights in it (name, offset, shape with the
rows first), `folder` of the same model for transformers, `tokens` of a text, and where to write: `nf4` and `double` (copies
of the file with the dequantized weights, the second with quantized constants) and `logits` (float32, a row per token, of
transformers with bitsandbytes' own layers). Prints one line of JSON: how NumPy's nf4 differs from bitsandbytes', and versions.
"""
import json
import shutil
import sys

import bitsandbytes
import numpy as np
import torch
from bitsandbytes import functional
from transformers import AutoModelForCausalLM

BLOCK = 64
# Dettmers et al., QLoRA (2023), appendix E.
CODES = np.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ],
    np.float32,
)


def rounded(weight, double):
    packed, state = functional.quantize_4bit(
        torch.from_numpy(weight.copy()), blocksize=BLOCK, quant_type="nf4", compress_statistics=double
    )
    return functional.dequantize_4bit(packed, state).numpy()


def by_hand(weight):
    """Each block of 64 divided by its greatest magnitude, and the nearest code."""
    blocks = weight.reshape(-1, BLOCK)
    most = np.abs(blocks).max(1, keepdims=True)
    middles = (CODES[1:] + CODES[:-1]) / 2
    shares = np.divide(blocks, most, out=np.zeros_like(blocks), where=most > 0)
    return (CODES[np.searchsorted(middles, shares)] * most).reshape(weight.shape)


def write_copies(request):
    different, count, worst = 0, 0, 0.0
    for path in (request["nf4"], request["double"]):
        shutil.copyfile(request["model"], path)
    single = np.memmap(request["nf4"], np.uint8, "r+")
    double = np.memmap(request["double"], np.uint8, "r+")
    for place in request["places"]:
        size = 4 * int(np.prod(place["shape"]))
        part = slice(place["offset"], place["offset"] + size)
        weight = single[part].view(np.float32).reshape(place["shape"]).copy()
        found, mine = rounded(weight, False), by_hand(weight)
        scale = np.abs(weight.reshape(-1, BLOCK)).max(1).repeat(BLOCK).reshape(weight.shape)
        apart = np.abs(found - mine) > 1e-6 * scale
        different += int(apart.sum())
        count += weight.size
        worst = max(worst, float(np.abs(found - weight).max() / scale.max()))
        single[part] = np.frombuffer(found.tobytes(), np.uint8)
        double[part] = np.frombuffer(rounded(weight, True).tobytes(), np.uint8)
    single.flush()
    double.flush()
    return {"different": different / count, "weights": count, "worst": worst}


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
    found = write_copies(request)
    found["replaced"] = own_logits(request)
    found["versions"] = {"bitsandbytes": bitsandbytes.__version__, "torch": torch.__version__}
    print(json.dumps(found))


main()
