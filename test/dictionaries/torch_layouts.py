"""Dictionaries that lie in PyTorch checkpoints, as layouts.py writes the others.

    torch_layouts.py FOLDER SEED
"""
import collections
import json
import os

import numpy as np
import torch

from cases import case, f32, folder, print_case, relu, rng, top


def save(name, file, tensors, config=None):
    path = os.path.join(folder, name)
    os.makedirs(path)
    torch.save(tensors, os.path.join(path, file))
    if config is not None:
        with open(os.path.join(path, "config.json"), "w") as out:
            json.dump(config, out)
    return path


def sizes():
    return int(rng.integers(2, 80)), int(rng.integers(2, 170)), int(rng.integers(1, 60))


t = torch.tensor

# Qwen-Scope: both matrices turned, the k largest raw values. W_dec saved as a view, so that strides count.
d, F, n = sizes()
x, E, b, D, c = f32(n, d, scale=3), f32(F, d), f32(F), f32(F, d), f32(d)
k = int(rng.integers(1, F + 1))
f = top(x.astype(float) @ E.T + b, k)
path = save("qwen", "layer9.sae.pt", {"W_enc": t(E), "W_dec": t(D).T, "b_enc": t(b), "b_dec": t(c)})
case("Qwen-Scope", path, x, f, f @ D.astype(float) + c, claim=9, layer=9, k=k)

# Goodfire: two linear maps, in half precision here.
d, F, n = sizes()
x, E, b, D, c = f32(n, d, scale=3), f32(F, d).astype(np.float16), f32(F), f32(d, F), f32(d)
f = relu(x.astype(float) @ E.T.astype(float) + b)
path = save("goodfire", "Goodfire.pth", collections.OrderedDict(
    [("encoder_linear.weight", t(E)), ("encoder_linear.bias", t(b)), ("decoder_linear.weight", t(D)),
     ("decoder_linear.bias", t(c))]))
case("Goodfire", path, x, f, f @ D.T.astype(float) + c, claim=19, layer=19)

# dictionary_learning, class by class.
for name in ["AutoEncoder", "AutoEncoderNew", "AutoEncoderTopK", "BatchTopKSAE", "MatryoshkaBatchTopKSAE",
             "JumpReluAutoEncoder", "GatedAutoEncoder"]:
    d, F, n = sizes()
    x, E, b, D, c = f32(n, d, scale=3), f32(F, d), f32(F), f32(d, F), f32(d)
    k, theta = int(rng.integers(1, F + 1)), 0.8
    trainer = {"dict_class": name, "layer": 4, "lm_name": "toy"}
    z, e, w = x.astype(float), E.astype(float), D.astype(float)
    linear = {"encoder.weight": t(E), "encoder.bias": t(b), "decoder.weight": t(D)}
    square = {"W_enc": t(E).T.contiguous(), "b_enc": t(b), "W_dec": t(D).T.contiguous(), "b_dec": t(c)}
    if name == "AutoEncoder":
        tensors = {**linear, "bias": t(c)}
        length = np.linalg.norm(w, axis=0)
        f = relu((z - c) @ e.T + b) * length
        w = w / length
    elif name == "AutoEncoderNew":
        tensors = {**linear, "decoder.bias": t(c)}
        f = relu(z @ e.T + b)
    elif name == "AutoEncoderTopK":
        tensors = {**linear, "b_dec": t(c), "k": torch.tensor(k, dtype=torch.int), "threshold": torch.tensor(-1.0)}
        f = top(relu((z - c) @ e.T + b), k)
    elif name == "BatchTopKSAE":
        tensors = {**linear, "b_dec": t(c), "k": torch.tensor(k), "threshold": torch.tensor(theta)}
        h = relu((z - c) @ e.T + b)
        f = h * (h > np.float32(theta))
    elif name == "MatryoshkaBatchTopKSAE":
        tensors = {**square, "threshold": torch.tensor(theta), "group_sizes": torch.tensor([F])}
        h = relu((z - c) @ e.T + b)
        f = h * (h > np.float32(theta))
    elif name == "JumpReluAutoEncoder":
        th = np.abs(f32(F))
        tensors = {**square, "threshold": t(th)}
        h = z @ e.T + b
        f = relu(h) * (h > th)
    else:
        r, m = f32(F, scale=0.3), f32(F)
        tensors = {"encoder.weight": t(E), "gate_bias": t(b), "mag_bias": t(m), "r_mag": t(r), "decoder.weight": t(D),
                   "decoder_bias": t(c)}
        p = (z - c) @ e.T
        f = (p + b > 0) * relu(np.exp(r.astype(float)) * p + m)
    path = save("dl-" + name, "ae.pt", tensors, {"trainer": trainer, "buffer": {}})
    case("dictionary_learning " + name, path, x, f, f @ w.T + c, layer=4)

print_case()
