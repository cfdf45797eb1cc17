"""What a Jacobian lens reads, by the independent forward pass: probabilities, entropy, distance from the output.

The lens's file is read here with zipfile and numpy alone: its storages lie in the order of the blocks.
"""
import json
import os
import sys
import zipfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from forward import Qwen3  # noqa: E402


def log_softmax(logits):
    x = logits.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def main(folder):
    with open(os.path.join(folder, "cases.json")) as file:
        cases = json.load(file)
    floats = np.fromfile(os.path.join(folder, "values.f32"), np.float32)

    def array(place):
        return floats[place["at"] : place["at"] + int(np.prod(place["shape"]))].reshape(place["shape"])

    model = Qwen3(cases["model"])
    with zipfile.ZipFile(cases["lens"]) as archive:
        root = archive.namelist()[0].split("/")[0]
        lens = [
            np.frombuffer(archive.read(f"{root}/data/{layer}"), np.float16).astype(np.float32)
            for layer in range(model.n_layer - 1)
        ]
    head = model.weights.get("output.weight", model.weights["token_embd.weight"])

    def read(rows):
        return log_softmax(model.norm(rows, "output_norm.weight") @ head.T)

    results = {"variation": 0.0, "entropy": 0.0, "divergence": 0.0, "moved": 0.0}
    for case in cases["prompts"]:
        states, _ = model.forward(np.array(case["tokens"]))
        output = read(states[-1])
        for layer, found in enumerate(case["layers"]):
            matrix = lens[layer].reshape(model.width, model.width)
            mine = read((matrix @ states[layer].T).T)
            apart = np.abs(np.exp(mine) - array(found["probabilities"])).sum(-1).max() / 2
            results["variation"] = max(results["variation"], float(apart))
            plain = read(states[layer])
            results["moved"] = max(results["moved"], float(np.abs(np.exp(mine) - np.exp(plain)).sum(-1).max() / 2))
            entropy = -(np.exp(mine) * mine).sum(-1)
            divergence = (np.exp(output) * (output - mine)).sum(-1)
            for name, values in (("entropy", entropy), ("divergence", divergence)):
                results[name] = max(results[name], float(np.abs(values - array(found[name])).max()))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
