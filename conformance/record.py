"""Makes the expected values in `models/`, with llama.cpp's own programs:

    python record.py LLAMA_SERVER LLAMA_QUANTIZE LLAMA_EVAL_CALLBACK

Rows are what `llama-eval-callback` prints: the first and last three values of the first and last three tokens, with four
decimals, and the sum of all. Log-probabilities are llama-server's, of all tokens.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from suite import gguf, models
from suite.llama_server import LlamaServer
from suite.questions import FORMS, FORMS_BOUND, TEXTS, apart_on_average, control_vector, middle

HERE = os.path.dirname(os.path.abspath(__file__))


def printed(size):
    return list(range(size)) if size <= 6 else [0, 1, 2, size - 3, size - 2, size - 1]


def blocks(program, path, tokens):
    """Of each block's output: its shape, the printed values with row and column, and the sum."""
    text = bytes(token for token in tokens if token < 256).decode()
    flags = ["-m", path, "-p", text, "-ngl", "0", "-fit", "off", "-c", "256", "-b", "256", "-ub", "256", "-t", "1"]
    flags += ["-ctk", "f32", "-ctv", "f32", "-fa", "off", "--log-colors", "off", "--no-log-prefix", "--no-log-timestamps"]
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run([program, *flags], stdout=output, stderr=subprocess.PIPE, text=True, check=True)
        output.seek(0)
        lines = output.read().split("\n")
    listed = re.search(r"number of input tokens = \d+\n((?: +\d+\n)*)", done.stderr)[1].split()
    assert [int(each) for each in listed] == tokens, f"{path}: other tokens, {listed}"
    found, current = {}, None
    for line in lines:
        head = re.match(r"common_debug_cb_eval: +(.+?) = \(\w+\) .*= \{(\d+), (\d+), (\d+), (\d+)\}$", line)
        if head:
            current = {"name": head[1], "width": int(head[2]), "rows": int(head[3]), "values": []}
            waiting = printed(current["rows"])
        elif current and (row := re.match(r" {12}\[(.*)\],$", line)):
            numbers = [float(each) for each in row[1].split(",") if "..." not in each]
            at = waiting.pop(0) if waiting else None  # tensors of more dimensions are not needed
            current["values"] += [[at, column, value] for column, value in zip(printed(current["width"]), numbers)]
        elif current and (total := re.match(r" {4}sum = (\S+)$", line)):
            name = current.pop("name")
            if name.startswith("l_out-"):
                found[int(name[6:])] = {**current, "sum": float(total[1])}
            current = None
    return [found[block] for block in sorted(found)]


def rounded(logprobs):
    assert np.isfinite(logprobs).all()
    return [round(float(each), 5) for each in logprobs]


def expected(model, folder, server, quantize, eval_callback):
    path = models.gguf_path(folder, model.name)
    sha256 = models.write_gguf(model, path)
    # The program adds BOS to a text only where the model's tokenizer does.
    texts = {name: text if model.bos else text[1:] for name, text in TEXTS.items()}
    found = {"name": model.name, "sha256": sha256, "texts": texts}
    found["rows"] = {name: blocks(eval_callback, path, text) for name, text in texts.items()}
    running = LlamaServer(server, path)
    found["next"] = {name: rounded(running.next(text)) for name, text in texts.items()}
    running.close()
    vector = os.path.join(folder, "vector.gguf")
    gguf.write_control_vector(vector, model.name, middle(model), control_vector(model))
    flags = ["--control-vector", vector, "--control-vector-layer-range", f"{middle(model)}", f"{middle(model)}"]
    running = LlamaServer(server, path, *flags)
    found["steered"] = rounded(running.next(texts["capital"]))
    running.close()
    for form in FORMS if model.name == "llama" else []:
        small, whole = models.gguf_path(folder, model.name, form), os.path.join(folder, "whole.gguf")
        for source, to, kind in [(path, small, form), (small, whole, "F32")]:
            subprocess.run([quantize, "--allow-requantize", source, to, kind], check=True, capture_output=True)
        running = LlamaServer(server, whole)
        found.setdefault("forms", {})[form] = rounded(running.next(texts["capital"]))
        moved = apart_on_average(found["next"]["capital"], found["forms"][form])
        assert moved > 2 * FORMS_BOUND, f"{form} moves log-probabilities by {moved} only."
        running.close()
    return found


def main(server, quantize, eval_callback):
    with tempfile.TemporaryDirectory() as folder:
        for model in models.MODELS.values():
            found = expected(model, folder, server, quantize, eval_callback)
            with open(os.path.join(HERE, "models", f"{model.name}.json"), "w") as file:
                file.write(json.dumps(found, separators=(",", ":")) + "\n")
            print("recorded", model.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
