"""Artifacts of jobs as NumPy arrays. Imported only on demand, since it requires NumPy."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ._errors import TaplineError

try:
    import numpy as np
except ImportError:
    raise TaplineError(
        "Arrays require NumPy, which is not installed; Lab.artifact() downloads files without it."
    ) from None

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Probe:
    """A linear probe on block outputs of one layer; all arrays are [hidden], the bias is a number."""

    weight: Floats
    bias: float
    mean: Floats
    std: Floats

    def probabilities(self, activations: ArrayLike) -> Floats:
        """P(label 1) of activations [..., hidden]: sigmoid(((x - mean) / std) @ weight + bias)."""
        logits = ((np.asarray(activations) - self.mean) / self.std) @ self.weight + self.bias
        # With tanh, because exp of large numbers overflows.
        result: Floats = 0.5 * (1 + np.tanh(0.5 * logits))
        return result


@dataclass(frozen=True)
class Autoencoder:
    """A sparse autoencoder on block outputs of one layer."""

    encoder_weight: Floats
    """[features, hidden]"""
    encoder_bias: Floats
    """[features]"""
    decoder_weight: Floats
    """[hidden, features]"""
    decoder_bias: Floats
    """[hidden]"""
    mean: Floats
    """[hidden]"""
    scale: float
    k: int | None = None
    """topk: number of active features per token."""
    threshold: Floats | None = None
    """batchtopk and jumprelu: activation threshold of each feature, [features]."""

    def encode(self, activations: ArrayLike) -> Floats:
        """Features [..., features] of activations [..., hidden]."""
        standard = (np.asarray(activations) - self.mean) / self.scale
        h: Floats = standard @ self.encoder_weight.T + self.encoder_bias
        if self.threshold is not None:
            return np.where(h > self.threshold, h, 0)
        features: Floats = np.maximum(h, 0)
        if self.k is not None:
            rest = np.argsort(-features, axis=-1, kind="stable")[..., self.k :]
            np.put_along_axis(features, rest, 0, axis=-1)
        return features

    def decode(self, features: ArrayLike) -> Floats:
        """Activations [..., hidden] reconstructed from features [..., features]."""
        standard = np.asarray(features) @ self.decoder_weight.T + self.decoder_bias
        activations: Floats = standard * self.scale + self.mean
        return activations


@dataclass(frozen=True)
class RowScores:
    """A probe's score for every token of its examples; all arrays are [rows]."""

    text: NDArray[np.int32]
    """Index of the example."""
    token: NDArray[np.int32]
    """Index of the token."""
    score: NDArray[np.float64]
    """The probability of label 1."""


@dataclass(frozen=True)
class Capture:
    """Block outputs captured by a request."""

    layers: dict[int, NDArray[np.float32]]
    """[rows, hidden] of each layer."""
    rows: NDArray[np.int32]
    """Token indices."""
    token_ids: NDArray[np.int32]
    """Ids of these tokens; a generated token was predicted at the row before its own."""
    prompt_tokens: int
    """Number of tokens of the prompt."""


def vector_file(vector: Any, layer: int | None) -> bytes:
    """A direction, or directions by layer, as a file for the service."""
    if isinstance(vector, Mapping) != (layer is None):
        raise ValueError("layer is required for a single array, and not allowed for arrays by layer.")
    by_layer = vector if isinstance(vector, Mapping) else {layer: vector}
    return _file({f"layer_{int(at)}": _row(f"layer {at}", row) for at, row in by_layer.items()})


def probe_file(weight: Any, bias: float, mean: Any, std: Any) -> bytes:
    """A probe in the Lab's file format."""
    row = _row("weight", weight)
    return _file(
        {
            "weight": row,
            "bias": np.asarray(bias, np.float32),
            "mean": np.zeros_like(row) if mean is None else _row("mean", mean),
            "std": np.ones_like(row) if std is None else _row("std", std),
        }
    )


def _row(what: str, values: Any) -> NDArray[np.float32]:
    array = np.asarray(values, np.float32)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{what} must be a one-dimensional array of finite numbers, got shape {array.shape}.")
    return array


def _file(arrays: dict[str, NDArray[np.float32]]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def capture(content: bytes) -> Capture:
    arrays = _npz(content)
    rows, token_ids, prompt = (arrays.pop(name) for name in ("rows", "token_ids", "prompt_tokens"))
    return Capture({_layer(name): array for name, array in arrays.items()}, rows, token_ids, int(prompt.item()))


def layers(artifacts: dict[str, bytes]) -> dict[int, NDArray[np.float32]]:
    arrays = _npz(artifacts["activations.npz"])
    return {_layer(name): array for name, array in arrays.items()}


def probes(artifacts: dict[str, bytes]) -> dict[int, Probe]:
    result = {}
    for name, content in artifacts.items():
        arrays = _npz(content)
        bias = float(arrays.pop("bias"))
        result[_layer(name)] = Probe(bias=bias, **arrays)
    return result


def row_scores(artifacts: dict[str, bytes]) -> dict[int, RowScores]:
    return {_layer(name): RowScores(**_npz(content)) for name, content in artifacts.items()}


def autoencoders(artifacts: dict[str, bytes]) -> dict[int, Autoencoder]:
    result = {}
    for name, content in artifacts.items():
        if not name.endswith(".safetensors"):
            continue
        layer, (tensors, metadata) = _layer(name), _safetensors(content)
        normalization = _npz(artifacts[f"sae-normalization-{layer}.npz"])
        result[layer] = Autoencoder(
            **{name.replace(".", "_"): tensor for name, tensor in tensors.items()},
            mean=normalization["mean"],
            scale=float(normalization["scale"]),
            k=int(metadata["k"]) if metadata.get("architecture") == "topk" else None,
        )
    return result


def _layer(name: str) -> int:
    match = re.search(r"[0-9]+", name)
    if match is None:
        raise TaplineError(f"{name} does not contain a layer.")
    return int(match.group())


def _npz(content: bytes) -> dict[str, Floats]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


def _safetensors(content: bytes) -> tuple[dict[str, Floats], dict[str, str]]:
    """Tensors and metadata. The file has the header's length in eight bytes, the header with each tensor's type, shape and offsets, and the data."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise TaplineError(f"Tensor {name} is {entry['dtype']}; this client supports only F32.")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(content[begin:end], dtype="<f4").reshape(entry["shape"])
    return tensors, header.get("__metadata__", {})
