"""Shared code of both writers of layouts: the generator, the two activations, the printing of a case."""
import json
import sys

import numpy as np

folder = sys.argv[1]
rng = np.random.default_rng(int(sys.argv[2]))
cases = []


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def relu(h):
    return np.maximum(h, 0)


def top(h, k):
    """The k largest of each row, the rest 0."""
    out = np.zeros_like(h)
    for i, row in enumerate(h):
        kept = np.argsort(-row, kind="stable")[:k]
        out[i, kept] = row[kept]
    return out


def case(name, path, x, f, y, **said):
    cases.append({"name": name, "path": path, "rows": x.ravel().tolist(), "hidden": x.shape[1],
                  "features": f.ravel().tolist(), "decoded": y.ravel().tolist(), **said})


def print_case():
    print(json.dumps(cases))
