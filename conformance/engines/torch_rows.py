"""Shared by the adapters of engines on PyTorch: edits of a batch's rows, and batches of texts of different lengths."""

import os
import warnings
from dataclasses import replace

import numpy as np
import torch

from suite.engine import Answer

PAD = 258


def quiet():
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.filterwarnings("ignore")
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # on a busy machine, several threads spin while they wait for each other


def tensor_edit(edit, dtype):
    vector = None if edit.vector is None else torch.tensor(np.asarray(edit.vector), dtype=dtype)
    return replace(edit, vector=vector)


def changed(value, edits, firsts, done=0):
    """A copy of [texts, rows, width] with the edits of its texts applied.

    firsts: the row of each text's first token. done: rows of the texts that came before these, in the cache.
    """
    value = value.clone()
    for edit in edits:
        first = firsts[edit.text]
        rows = [row for row in range(value.shape[1]) if done + row >= first and edit.covers(done + row - first)]
        if rows:
            value[edit.text, rows] = tensor_edit(edit, value.dtype).applied(value[edit.text, rows])
    return value


def grouped(edits):
    """Edits by (point, layer)."""
    found = {}
    for edit in edits:
        found.setdefault((edit.point, edit.layer), []).append(edit)
    return found


def padded(texts, side):
    """Ids, mask, and the row of each text's first token."""
    longest = max(map(len, texts))
    gaps = [[PAD] * (longest - len(text)) for text in texts]
    ids = [gap + list(text) if side == "left" else list(text) + gap for gap, text in zip(gaps, texts)]
    mask = [[0] * len(gap) + [1] * len(text) if side == "left" else [1] * len(text) + [0] * len(gap) for gap, text in zip(gaps, texts)]
    return torch.tensor(ids), torch.tensor(mask), [len(gap) if side == "left" else 0 for gap in gaps]


def answers(texts, firsts, logits, seen):
    """Logits of each text's last token, and rows without padding."""
    spans = [slice(first, first + len(text)) for first, text in zip(firsts, texts)]
    rows = {
        place: [
            (value[at][:, span, span] if place[0] == "attention" else value[at][span]).numpy() for at, span in enumerate(spans)
        ]
        for place, value in seen.items()
    }
    return Answer([logits[at][span][-1].numpy() for at, span in enumerate(spans)], rows)


def first_of(output):
    return output[0] if isinstance(output, tuple) else output
