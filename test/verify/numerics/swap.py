"""Two tokens' coordinates exchanged along a Jacobian lens, by the independent forward pass and a pseudo-inverse."""
import json
import os
import sys
import zipfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from forward import Qwen3, softmax  # noqa: E402


def main(folder):
    with open(os.path.join(folder, "cases.json")) as file:
        cases = json.load(file)
    model = Qwen3(cases["model"])
    with zipfile.ZipFile(cases["lens"]) as archive:
        root = archive.namelist()[0].split("/")[0]
        lens = [
            np.frombuffer(archive.read(f"{root}/data/{layer}"), np.float16)
            .astype(np.float64)
            .reshape(model.width, model.width)
            for layer in range(model.n_layer - 1)
        ] + [np.eye(model.width)]
    head = model.weights.get("output.weight", model.weights["token_embd.weight"]).astype(np.float64)
    head = head * model.weights["output_norm.weight"]
    results = {"probability": 0.0, "effect": 0.0}
    for case in cases["cases"]:
        clean, plain = model.forward(np.array(case["tokens"]))

        def change(layer, rows):
            if layer not in case["layers"]:
                return rows
            basis = np.stack([lens[layer].T @ head[token] for token in case["swap"]], 1)
            inverse = np.linalg.pinv(basis)
            rows = rows.copy()
            for position in case["positions"]:
                wanted = inverse @ clean[layer][position]
                moved = basis @ (wanted[::-1] - inverse @ rows[position])
                rows[position] = rows[position] + case["strength"] * moved
            return rows

        _, logits = model.forward(np.array(case["tokens"]), change=change)
        mine = softmax(logits)[case["target"]]
        results["probability"] = max(results["probability"], abs(float(mine) - case["probability"]))
        results["effect"] = max(results["effect"], abs(float(mine) - float(softmax(plain)[case["target"]])))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
