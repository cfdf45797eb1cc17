"""Reads a GGUF version 3 file with F32, F16, Q4_1 and Q8_0 tensors: metadata and arrays, nothing else."""
import struct

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
TENSOR_TYPES = {0: np.float32, 1: np.float16}
# A block of 32 weights: Q4_1 is scale, minimum and 16 bytes whose low halves are the first 16; Q8_0 is scale and 32 bytes.
BLOCKS = {
    3: np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("halves", "u1", 16)]),
    8: np.dtype([("scale", "<f2"), ("values", "i1", 32)]),
}


def dequantised(blocks):
    """float32 [blocks, 32]"""
    scale = blocks["scale"].astype(np.float32)[:, None]
    if "values" in blocks.dtype.names:
        return blocks["values"] * scale
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], 1)
    return halves * scale + blocks["minimum"].astype(np.float32)[:, None]


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
        count = int(np.prod(shape))
        if kind in TENSOR_TYPES:
            flat = np.frombuffer(cursor.data, TENSOR_TYPES[kind], count, start + offset)
        elif kind in BLOCKS:
            flat = dequantised(np.frombuffer(cursor.data, BLOCKS[kind], count // 32, start + offset))
        else:
            raise SystemExit(f"Tensor {name} of {path} is of type {kind}, which this reader does not know.")
        tensors[name] = flat.reshape(shape[::-1])
    return metadata, tensors
