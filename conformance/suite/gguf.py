"""Writes GGUF version 3: metadata and tensors in F32."""

import struct

import numpy as np

ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def typed(value):
    """A value with its type: Python's bool, int (as uint32), float, str, and lists of int (as int32), float or str."""
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return UINT32, struct.pack("<I", value)
    if isinstance(value, float):
        return FLOAT32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, text(value)
    if isinstance(value[0], str):
        kind, items = STRING, b"".join(map(text, value))
    elif isinstance(value[0], float):
        kind, items = FLOAT32, struct.pack(f"<{len(value)}f", *value)
    else:
        kind, items = INT32, struct.pack(f"<{len(value)}i", *value)
    return ARRAY, struct.pack("<IQ", kind, len(value)) + items


def padding(length):
    return b"\0" * (-length % ALIGNMENT)


def write(path, metadata, tensors):
    """`tensors`: float32 arrays by name, slowest dimension first."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, value in metadata.items():
        kind, data = typed(value)
        head += [text(key), struct.pack("<I", kind), data]
    offset = 0
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]
        head += [text(name), struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)]
        offset += tensor.nbytes + len(padding(tensor.nbytes))
    start = b"".join(head)
    with open(path, "wb") as file:
        file.write(start + padding(len(start)))
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor, np.float32).tobytes() + padding(tensor.nbytes))


def write_control_vector(path, architecture, layer, vector):
    """A direction that llama.cpp adds to the output of block `layer`; its own count starts at 1 for block 1."""
    metadata = {"general.architecture": "controlvector", "controlvector.model_hint": architecture}
    write(path, metadata, {f"direction.{layer}": np.asarray(vector, np.float32)})
