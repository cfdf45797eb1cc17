"""Reads a GGUF version 3 file with F32 and F16 tensors: metadata and arrays, nothing else."""
import struct

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
TENSOR_TYPES = {0: np.float32, 1: np.float16}


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def text(self):
        length = self.take("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            item = self.take("I")
            return [self.value(item) for _ in range(self.take("Q"))]
        return self.take(SCALARS[kind])


def read(path):
    """(metadata, tensors): tensors as numpy arrays, slowest dimension first."""
    with open(path, "rb") as file:
        cursor = Cursor(file.read())
    if cursor.data[:4] != b"GGUF":
        raise SystemExit(f"{path} is no GGUF file.")
    cursor.at = 4
    if cursor.take("I") != 3:
        raise SystemExit(f"{path} is not GGUF version 3.")
    n_tensors, n_values = cursor.take("Q"), cursor.take("Q")
    metadata = {}
    for _ in range(n_values):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.take("I"))
    infos = []
    for _ in range(n_tensors):
        name = cursor.text()
        shape = [cursor.take("Q") for _ in range(cursor.take("I"))]
        infos.append((name, shape, cursor.take("I"), cursor.take("Q")))
    alignment = metadata.get("general.alignment", 32)
    start = -(-cursor.at // alignment) * alignment
    tensors = {}
    for name, shape, kind, offset in infos:
        if kind not in TENSOR_TYPES:
            raise SystemExit(f"Tensor {name} of {path} is neither F32 nor F16.")
        count = int(np.prod(shape))
        flat = np.frombuffer(cursor.data, TENSOR_TYPES[kind], count, start + offset)
        tensors[name] = flat.reshape(shape[::-1])
    return metadata, tensors
