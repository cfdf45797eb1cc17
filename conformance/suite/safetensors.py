"""Reads and writes safetensors files; writes F32 only."""

import json

import numpy as np

KINDS = {"F32": np.float32, "I32": np.int32, "I64": np.int64}


def encoded(arrays, metadata=None):
    """The bytes of a file with these arrays by name, in F32."""
    header, offset = {} if metadata is None else {"__metadata__": metadata}, 0
    values = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
    for name, array in values.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in values.values())])


def decoded(data):
    """The arrays of a file by name."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, each in header.items():
        first, end = each["data_offsets"]
        found[name] = np.frombuffer(data[start + first : start + end], KINDS[each["dtype"]]).reshape(each["shape"])
    return found
