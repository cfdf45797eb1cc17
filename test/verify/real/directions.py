"""A tool's steering direction of text pairs against the same method on tapline's block outputs.

    directions.py steering-vectors|repeng CASES.json FOLDER
"""
import json
import sys

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

tool, cases_path, folder = sys.argv[1:]
torch.set_num_threads(1)
with open(cases_path) as file:
    cases = json.load(file)
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
layers = cases["layers"]


def differences(layer):
    rows = np.array(cases["rows"][str(layer)])
    return rows[::2] - rows[1::2]


if tool == "steering-vectors":
    from steering_vectors import train_steering_vector

    found = train_steering_vector(model, tokenizer, [tuple(pair) for pair in cases["pairs"]], layers=layers)
    theirs = {layer: found.layer_activations[layer].numpy() for layer in layers}
    ours = {layer: differences(layer).mean(0) for layer in layers}
else:
    from repeng import ControlModel, ControlVector, DatasetEntry

    controlled = ControlModel(model, layers)
    entries = [DatasetEntry(positive=positive, negative=negative) for positive, negative in cases["pairs"]]
    # One text a batch, so that padding has no say. "pca_center" takes each pair's midpoint off both of its rows.
    found = ControlVector.train(controlled, tokenizer, entries, batch_size=1, method="pca_center", hidden_layers=layers)
    theirs = {layer: found.directions[layer] for layer in layers}
    ours = {}
    for layer in layers:
        half = differences(layer) / 2
        component = np.linalg.svd(np.concatenate([half, -half]), full_matrices=False)[2][0]
        ours[layer] = component * np.sign((half @ component).mean())


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


least = min(cosine(ours[layer], theirs[layer]) for layer in layers)
print(json.dumps({"least": least, "between": cosine(ours[layers[0]], theirs[layers[-1]])}))
