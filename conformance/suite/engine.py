"""The interface of adapters: `Engine`. Methods raise NotOffered, with one sentence, if the engine has no way to do something."""

from dataclasses import dataclass

import numpy as np


class NotOffered(Exception):
    """The engine has no way to do this."""


@dataclass(frozen=True)
class Edit:
    """A change of the rows of one text of a batch at one point of one block.

    kind: "add" (h + vector), "scale" (factor * h), "ablate" (0) or "patch" (vector instead of h).
    point: "attn_out" or "ffn_out", what attention or the MLP adds to the residual stream; "block_out", the residual stream
    after the block. positions: token indices of the text; None for all, also generated ones. "prompt" and "generated" are
    resolved by the questions.
    """

    kind: str
    point: str
    layer: int
    positions: tuple = None
    vector: object = None
    factor: float = 1.0
    text: int = 0

    def covers(self, position):
        return self.positions is None or position in self.positions

    def applied(self, rows):
        """For arrays of NumPy and torch."""
        if self.kind == "add":
            return rows + self.vector
        if self.kind == "scale":
            return rows * self.factor
        return rows * 0 if self.kind == "ablate" else rows * 0 + self.vector


def by_text(edits, texts):
    """For each text of a batch, the edits of that text."""
    return [[edit for edit in edits if edit.text == at] for at in range(len(texts))]


@dataclass
class Answer:
    logits: list
    """Of each text's last token; log-probabilities are also possible."""
    rows: dict
    """By (point, layer): one array per text, [tokens, width]; of the point "attention" [heads, tokens, tokens]."""


@dataclass(frozen=True)
class Files:
    """A model, as the engine may read it."""

    name: str
    gguf: str
    folder: str
    draft: str = None
    """Of a second model with the same tokens, a GGUF file or a folder like the other."""
    form: str = "F32"


class Engine:
    """An engine with one loaded model."""

    reads = "folder"
    """Which of a model's files it reads: "folder" or "gguf"."""
    package = None
    """The Python package whose version the table shows."""

    def __init__(self, files: Files, chunk=None, draft=False):
        """chunk: compute prompts this many tokens at a time. draft: use the draft model."""
        raise NotImplementedError

    def run(self, texts, edits=(), capture=()) -> Answer:
        """Texts (lists of token ids) in one batch. capture: (point, layer) pairs."""
        raise NotOffered("No forward call.")

    def generate(self, texts, count, edits=()):
        """Greedy continuations of texts in one batch, with the engine's caches."""
        raise NotOffered("No generation.")

    def tokens(self, text):
        """Token ids of a text, with the engine's defaults."""
        raise NotOffered("No tokenizer.")

    def mistakes(self):
        """Wrong requests, by their mistake: each as text and as a function that should raise an error.

        A function may return a sentence instead, if the answer reports the mistake.
        """
        raise NotOffered("No requests.")

    def close(self):
        pass


def log_softmax(logits):
    x = np.asarray(logits, np.float64)
    x = x - x.max()
    return x - np.log(np.exp(x).sum())
