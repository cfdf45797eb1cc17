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
    prompts, scored = 0.0, 0
    for prompt in given["prompts"]:
        tokens = np.array(prompt["tokens"])
        top = np.array(prompt["topIds"]).reshape(len(tokens) - 1, -1)
        told = np.array(prompt["topLogProbabilities"]).reshape(top.shape)
        # Every token of a short prompt; of a long one those around the seams of its batches, and some between.
        for place in (p for p in range(1, len(tokens)) if len(tokens) < 60 or p % 29 == 0 or 254 <= p <= 259):
            expected = log_softmax(model.forward(tokens[:place])[1])
            rows = [(tokens[place], prompt["logProbabilities"][place - 1]), *zip(top[place - 1], told[place - 1])]
            for token, value in rows:
                if expected[token] > -9:
                    prompts = max(prompts, abs(value - expected[token]))
                    scored += 1
    json.dump({"worst": worst, "wrong_order": wrong_order, "compared": compared, "prompts": prompts, "scored": scored}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
