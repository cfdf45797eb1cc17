"""Log-probabilities of every token that the server chose among, from numpy's own forward pass of the whole text."""

import json
import os
import sys

import numpy as np

from forward import Qwen3


def log_softmax(logits):
    x = logits.astype(np.float64)
    x -= x.max()
    return x - np.log(np.exp(x).sum())


def main(folder):
    with open(os.path.join(folder, "answers.json")) as file:
        given = json.load(file)
    model = Qwen3(given["model"])
    worst, wrong_order, compared = 0.0, 0, 0
    for answer in given["answers"]:
        tokens = list(answer["prompt"])
        for step in answer["steps"]:
            expected = log_softmax(model.forward(np.array(tokens))[1])
            for entry in [step, *step["top"]]:
                # What is far less probable than one in 10,000 differs by the rounding of F16 weights and K/V.
                if expected[entry["id"]] > -9:
                    worst = max(worst, abs(entry["logprob"] - expected[entry["id"]]))
                    compared += 1
            best = expected[step["top"][0]["id"]]
            wrong_order += int(expected.max() - best > 0.02)
            tokens.append(step["id"])
    json.dump({"worst": worst, "wrong_order": wrong_order, "compared": compared}, sys.stdout)


main(sys.argv[1])
