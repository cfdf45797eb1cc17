"""A small GGUF version 3 writer: metadata and F16 / F32 tensors, nothing else."""
import struct

import numpy as np

MAGIC, VERSION, ALIGN = b"GGUF", 3, 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_TYPE = {np.dtype(np.float32): 0, np.dtype(np.float16): 1}


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def scalar(kind, v):
    if kind == STRING:
        return text(v)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], v)


def kind_of(v):
    return {bool: BOOL, int: U32, float: F32, str: STRING}[type(v)]


def value(v):
    """A typed value; lists take the type of their first item, (kind, list) names it."""
    if isinstance(v, (list, tuple)):
        kind, items = v if isinstance(v, tuple) else (kind_of(v[0]), v)
        return struct.pack("<IIQ", ARRAY, kind, len(items)) + b"".join(scalar(kind, x) for x in items)
    return struct.pack("<I", kind_of(v)) + scalar(kind_of(v), v)


def pad(n):
    return b"\0" * (-n % ALIGN)


def write(path, metadata, tensors):
    """metadata: {key: value}; tensors: {name: float32 or float16 array}, written in order."""
    head = MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(metadata))
    for k, v in metadata.items():
        head += text(k) + value(v)
    at = 0
    for name, x in tensors.items():
        head += text(name) + struct.pack("<I", x.ndim) + struct.pack(f"<{x.ndim}Q", *reversed(x.shape))
        head += struct.pack("<IQ", TENSOR_TYPE[x.dtype], at)
        at += x.nbytes + len(pad(x.nbytes))
    with open(path, "wb") as f:
        f.write(head + pad(len(head)))
        for x in tensors.values():
            f.write(np.ascontiguousarray(x).tobytes() + pad(x.nbytes))
