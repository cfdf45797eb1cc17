"""A served model's weights as arrays: dequantised once by the server, mapped from its cache. Requires NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from ._errors import TaplineError

if TYPE_CHECKING:
    from ._http import Transport

_LISTING = threading.Lock()


class PerBlock(Sequence[Any]):
    """One entry per block, read when it is used: `model.W_O[12]`."""

    def __init__(self, blocks: int, read: Callable[[int], Any]) -> None:
        self._blocks = range(blocks)
        self._read = read

    @overload
    def __getitem__(self, block: int) -> Any: ...
    @overload
    def __getitem__(self, block: slice) -> list[Any]: ...
    def __getitem__(self, block: int | slice) -> Any:
        chosen = self._blocks[block]
        return self._read(chosen) if isinstance(chosen, int) else [self._read(one) for one in chosen]

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Any]:
        return (self._read(block) for block in self._blocks)


class Weights:
    """Weights of a `Model`, as float32 arrays in TransformerLens's orientation: a row times a matrix."""

    if TYPE_CHECKING:
        _http: Transport

        @property
        def n_layers(self) -> int: ...

    @property
    def metadata(self) -> dict[str, Any]:
        """The GGUF file's strings, numbers and flags."""
        found: dict[str, Any] = self._listed()["metadata"]
        return found

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all weights by their names in the GGUF file."""
        return {one["name"]: tuple(one["shape"]) for one in self._listed()["tensors"]}

    def weight(self, name: str) -> Any:
        """One weight by its name in the GGUF file, such as "blk.3.ffn_down.weight", with rows of inputs: [out, in].

        The server dequantises it once, into its cache; the array is mapped from there. Raises TaplineError if the
        model has no such weight, or if its file cannot be opened from here.
        """
        try:
            import numpy as np
        except ImportError:
            raise TaplineError("Weights require NumPy, which is not installed: pip install numpy.") from None
        known = self.__dict__.setdefault("_arrays", {})
        if name not in known:
            path = self._http.json("/lab/weights", {"tensors": [name]})["files"][0]["path"]
            try:
                # Private pages: writable, as PyTorch wants them, without a copy.
                known[name] = np.asarray(np.load(path, mmap_mode="c"))
            except OSError as error:
                raise TaplineError(f"The server's file {path} cannot be opened from here: {error}.") from error
        return known[name]

    @property
    def W_E(self) -> Any:
        """Token embeddings, [vocabulary, hidden]; before any factor that the architecture applies to them."""
        return self.weight("token_embd.weight")

    @property
    def W_U(self) -> Any:
        """The unembedding, [hidden, vocabulary]; the embeddings' transpose where the model shares them."""
        return self.weight("output.weight" if "output.weight" in self.tensors else "token_embd.weight").T

    @property
    def W_O(self) -> PerBlock:
        """Per block, the heads' output projections, [heads, head size, hidden]."""
        return PerBlock(self.n_layers, self._output_projection)

    @property
    def W_V(self) -> PerBlock:
        """Per block, the value projections, [key-value heads, hidden, head size]."""
        return PerBlock(self.n_layers, self._value_projection)

    @property
    def norms(self) -> PerBlock:
        """Per block, the weights of its norms by name, such as "attn_norm", [width] each; factors as applied, so that
        Gemma's include the 1 that its checkpoints leave out."""
        return PerBlock(self.n_layers, self._norms_of)

    @property
    def final_norm(self) -> Any:
        """The weights of the norm before the unembedding, [hidden]."""
        return self.weight("output_norm.weight")

    def hyperparameter(self, name: str, fallback: Any = None) -> Any:
        """A value of the architecture in the file's metadata, such as "attention.head_count"."""
        metadata = self.metadata
        return metadata.get(f"{metadata['general.architecture']}.{name}", fallback)

    def _listed(self) -> dict[str, Any]:
        with _LISTING:
            if "_list" not in self.__dict__:
                self.__dict__["_list"] = self._http.json("/lab/weights")
        listed: dict[str, Any] = self.__dict__["_list"]
        return listed

    def _output_projection(self, block: int) -> Any:
        weight = self.weight(f"blk.{block}.attn_output.weight")
        heads = int(self.hyperparameter("attention.head_count"))
        return weight.T.reshape(heads, -1, weight.shape[0])

    def _value_projection(self, block: int) -> Any:
        heads = int(self.hyperparameter("attention.head_count_kv", self.hyperparameter("attention.head_count")))
        name = f"blk.{block}.attn_v.weight"
        if name in self.tensors:
            weight = self.weight(name)
        else:  # in one matrix with queries and keys, of which values are the last
            all_of_them = self.weight(f"blk.{block}.attn_qkv.weight")
            size = int(self.hyperparameter("attention.value_length", self._head_size()))
            weight = all_of_them[-heads * size :]
        return weight.reshape(heads, -1, weight.shape[1]).transpose(0, 2, 1)

    def _head_size(self) -> int:
        return int(self.hyperparameter("embedding_length")) // int(self.hyperparameter("attention.head_count"))

    def _norms_of(self, block: int) -> dict[str, Any]:
        start, end = f"blk.{block}.", "_norm.weight"
        named = [name for name in self.tensors if name.startswith(start) and name.endswith(end)]
        return {name[len(start) : -len(".weight")]: self.weight(name) for name in named}
