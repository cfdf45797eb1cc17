"""A row instead of a token embedding: numpy's own logits after it, and the following words, against the reported ones."""

import json
import os
import sys

import numpy as np

from forward import Qwen3, variation


def main(folder):
    with open(os.path.join(folder, "cases.json")) as file:
        given = json.load(file)
    floats = np.fromfile(os.path.join(folder, "values.f32"), np.float32)

    def array(place):
        return floats[place["at"] : place["at"] + int(np.prod(place["shape"]))].reshape(place["shape"])

    model = Qwen3(given["model"])
    worst, other, words, moved = 0.0, 0, 0, []
    for case in given["cases"]:
        place = len(case["before"])
        # The place holds the row, whatever token is named there.
        tokens = [*case["before"], 0, *case["after"]]
        row = array(case["row"])
        logits = model.forward(np.array(tokens), embedded=(place, row))[1]
        worst = max(worst, variation(array(case["logits"]), logits))
        moved.append(variation(logits, model.forward(np.array(tokens))[1]))
        for token in case["answer"]:
            words += 1
            other += int(logits.max() - logits[token] > 0.02)
            tokens.append(token)
            logits = model.forward(np.array(tokens), embedded=(place, row))[1]
    json.dump({"worst": worst, "other": other, "words": words, "moved": float(np.median(moved))}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
