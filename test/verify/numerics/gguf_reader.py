"""Reads a GGUF version 3 file with F32, F16, Q4_1, Q5_0, Q8_0, Q4_K and Q6_K tensors: metadata and arrays, nothing else."""
import struct

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
TENSOR_TYPES = {0: np.float32, 1: np.float16}


def scaled(blocks, name="scale"):
    return blocks[name].astype(np.float32)[:, None]


def halves(packed):
    """The low four bits of all bytes, then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], -1)


def q4_1(blocks):
    return halves(blocks["halves"]) * scaled(blocks) + scaled(blocks, "minimum")


def q5_0(blocks):
    fifth = np.unpackbits(blocks["fifth"], axis=-1, bitorder="little")
    return (halves(blocks["halves"]).astype(np.int8) + (fifth << 4).astype(np.int8) - 16) * scaled(blocks)


def q8_0(blocks):
    return blocks["values"] * scaled(blocks)


def q4_k(blocks):
    """256 weights in eight groups of 32; a group's scale and minimum have six bits each, packed into twelve bytes."""
    packed = blocks["scales"]
    low, high, rest = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([low & 63, (rest & 15) | (low >> 6 << 4)], 1)
    minima = np.concatenate([high & 63, (rest >> 4) | (high >> 6 << 4)], 1)
    values = halves(blocks["halves"].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    scale = scaled(blocks) * scales.astype(np.float32)
    minimum = scaled(blocks, "minimum") * minima.astype(np.float32)
    return (values * scale[:, :, None] - minimum[:, :, None]).reshape(-1, 256)


def q6_k(blocks):
    """256 weights in two halves of four rows of 32; a row's low four bits and its high two are stored apart."""
    low = blocks["low"].reshape(-1, 2, 2, 32)
    high = blocks["high"].reshape(-1, 2, 1, 32)
    fours = np.concatenate([low & 15, low >> 4], 2)
    twos = np.concatenate([high >> shift & 3 for shift in (0, 2, 4, 6)], 2)
    values = (fours | twos << 4).astype(np.int8) - 32
    scale = scaled(blocks) * blocks["scales"].astype(np.float32)
    return (values.reshape(-1, 16, 16) * scale[:, :, None]).reshape(-1, 256)


HALF = [("scale", "<f2"), ("minimum", "<f2")]
# Weights per block, a block's bytes, and its weights as float32.
BLOCKS = {
    3: (32, np.dtype([*HALF, ("halves", "u1", 16)]), q4_1),
    6: (32, np.dtype([("scale", "<f2"), ("fifth", "u1", 4), ("halves", "u1", 16)]), q5_0),
    8: (32, np.dtype([("scale", "<f2"), ("values", "i1", 32)]), q8_0),
    12: (256, np.dtype([*HALF, ("scales", "u1", 12), ("halves", "u1", 128)]), q4_k),
    14: (256, np.dtype([("low", "u1", 128), ("high", "u1", 64), ("scales", "i1", 16), ("scale", "<f2")]), q6_k),
}


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
            size, block, dequantised = BLOCKS[kind]
            flat = dequantised(np.frombuffer(cursor.data, block, count // size, start + offset))
        else:
            raise SystemExit(f"Tensor {name} of {path} is of type {kind}, which this reader does not know.")
        tensors[name] = flat.reshape(shape[::-1])
    return metadata, tensors
