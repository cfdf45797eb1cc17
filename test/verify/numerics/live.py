"""Edited chats of the server: log-probabilities from numpy's own pass of the whole text, its rows edited as asked."""

import json
import os
import sys

import numpy as np

from forward import Qwen3, intervention
from logprobs import log_softmax


def meant(positions, index, n_prompt):
    """Whether an edit reaches the token at `index`: the contract's words."""
    if positions == "all":
        return True
    if positions == "prompt":
        return index < n_prompt
    if positions == "generated":
        return index >= n_prompt
    if positions == "last":
        return index >= n_prompt - 1
    # Negative indices count from the end of the prompt.
    ends = [[end + n_prompt if end < 0 else end for end in pair] for pair in positions]
    return any(first <= index <= last for first, last in ends)


def function_of(written, vectors):
    kind, strength = written["kind"], written.get("strength", 1)
    vector = np.array(vectors[written["vector"]], np.float32) if "vector" in written else None
    unit = written.get("strength_unit", "unit")
    if kind == "steer" and unit == "vector":
        return lambda h: h + np.float32(strength) * vector
    if kind == "steer" and unit == "row_norm":
        kind = "steer_row_norm"
    if kind == "clamp":
        assert (unit, written["min"], written["max"]) == ("row_norm", 0.4, 0.6)
    return intervention(kind, strength, vector)


def main(folder):
    with open(os.path.join(folder, "answers.json")) as file:
        given = json.load(file)
    model = Qwen3(given["model"])
    worst, wrong_order, compared, moved = 0.0, 0, 0, float("inf")
    for answer in given["answers"]:
        tokens, n_prompt = list(answer["prompt"]), len(answer["prompt"])
        edits = [
            (written.get("layers", [written.get("layer")]), written.get("positions", "all"), function_of(written, given["vectors"]))
            for written in answer["interventions"]
        ]

        def change(layer, rows):
            for layers, positions, function in edits:
                if layer in layers:
                    rows = np.stack([function(row) if meant(positions, i, n_prompt) else row for i, row in enumerate(rows)])
            return rows

        most = 0.0
        for step in answer["steps"]:
            expected = log_softmax(model.forward(np.array(tokens), change=change)[1])
            plain = log_softmax(model.forward(np.array(tokens))[1])
            for entry in [step, *step["top"]]:
                # What is far less probable than one in 10,000 differs by the rounding of F16 weights and K/V.
                if expected[entry["id"]] > -9:
                    worst = max(worst, abs(entry["logprob"] - expected[entry["id"]]))
                    compared += 1
                    most = max(most, abs(plain[entry["id"]] - expected[entry["id"]]))
            wrong_order += int(expected.max() - expected[step["top"][0]["id"]] > 0.02)
            tokens.append(step["id"])
        moved = min(moved, most)
    json.dump({"worst": worst, "wrong_order": wrong_order, "compared": compared, "moved": moved}, sys.stdout)


main(sys.argv[1])
