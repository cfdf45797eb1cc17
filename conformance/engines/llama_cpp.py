"""llama.cpp's own server with a control vector: LLAMA_SERVER names the program. A vector is set when the server starts, for
everything that it computes, so each set of edits needs a separate server."""

import os
import tempfile

import numpy as np

from suite.engine import Answer, Engine, NotOffered
from suite.gguf import write_control_vector
from suite.llama_server import LlamaServer, program


class Adapter(Engine):
    reads = "gguf"

    def __init__(self, files, chunk=None, draft=False):
        if program() is None:
            raise NotOffered("Not run: LLAMA_SERVER does not name llama-server.")
        self.files = files
        self.flags = ["-ub", str(chunk), "-b", str(chunk)] if chunk else []
        self.flags += ["-md", files.draft, "--spec-draft-n-max", "4", "--spec-draft-ngl", "0"] if draft else []
        self.key, self.server = None, None

    def serving(self, edits, texts):
        """The server with these edits; it is restarted if it has different ones."""
        if edits and len(texts) > 1:
            raise NotOffered("A control vector acts on every request of the server.")
        for edit in edits:
            if edit.kind != "add" or edit.point != "block_out":
                raise NotOffered("A control vector is added to block outputs; there is no other edit.")
            if edit.positions is not None:
                raise NotOffered("A control vector acts on all positions.")
            if edit.layer < 1:
                raise NotOffered("A control vector has no direction for the output of block 0.")
        key = str([(edit.layer, np.asarray(edit.vector).tobytes()) for edit in edits])
        if self.key != key:
            self.close()
            self.server = self.start(edits)
            self.key = key
        return self.server

    def start(self, edits):
        with tempfile.TemporaryDirectory() as folder:
            flags = []
            for edit in edits:
                path = os.path.join(folder, "vector.gguf")
                write_control_vector(path, self.files.name, edit.layer, edit.vector)
                flags += ["--control-vector", path, "--control-vector-layer-range", f"{edit.layer}", f"{edit.layer}"]
            return LlamaServer(program(), self.files.gguf, *self.flags, *flags)

    def run(self, texts, edits=(), capture=()):
        if capture:
            raise NotOffered("llama-server returns no activations.")
        server = self.serving(edits, texts)
        return Answer([server.next(text) for text in texts], {})

    def generate(self, texts, count, edits=()):
        server = self.serving(edits, texts)
        return [server.generate(text, count) for text in texts]

    def tokens(self, text):
        return self.serving([], [text]).post("/tokenize", {"content": text, "add_special": True})["tokens"]

    def mistakes(self):
        server = self.serving([], [[]])
        body = {"prompt": [256, 84, 104], "n_predict": 1}

        def vector(layer, width):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "vector.gguf")
                write_control_vector(path, self.files.name, layer, np.ones(width))
                LlamaServer(program(), self.files.gguf, "--control-vector", path).close()

        return {
            "a block that does not exist": ("--control-vector with direction.99 only, for 4 blocks", lambda: vector(99, 256)),
            "a vector of another width": ("--control-vector with 128 numbers, for a width of 256", lambda: vector(1, 128)),
            "a field of another program": (
                'POST /completion {"prompt": [256, 84, 104], "interventions": [{"layer": 1, "scale": 2}]}',
                lambda: server.post("/completion", {**body, "interventions": [{"layer": 1, "scale": 2}]}),
            ),
        }

    def close(self):
        if self.server is not None:
            self.server.close()
        self.key, self.server = None, None
