"""The served model's tokenizer in the form that TransformerLens uses: llama.cpp's own tokens, without a download."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._model import Model


class Tokenizer:
    """The part of a transformers tokenizer that TransformerLens uses. `boot(tokenizer=…)` takes a real one instead."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.padding_side = "right"
        self.bos_token_id = self._special("bos")
        self.eos_token_id = self._special("eos")
        padding = self._special("padding")
        self.pad_token_id = padding if padding is not None else self.eos_token_id
        self.bos_token, self.eos_token, self.pad_token = (
            None if token is None else model.to_string([token])
            for token in (self.bos_token_id, self.eos_token_id, self.pad_token_id)
        )
        self.vocab_size = model.tensors["token_embd.weight"][0]
        self.name_or_path = model.name

    def _special(self, kind: str) -> int | None:
        found = self._model.metadata.get(f"tokenizer.ggml.{kind}_token_id")
        return None if found is None else int(found)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Token ids, with BOS first if there is one; special tokens in the text are recognised."""
        body = {"content": text, "add_special": False, "parse_special": True}
        tokens = [int(token) for token in self._model._http.json("/tokenize", body)["tokens"]]
        return [self.bos_token_id, *tokens] if add_special_tokens and self.bos_token_id is not None else tokens

    def __call__(self, text: Any, add_special_tokens: bool = True, **_: Any) -> dict[str, Any]:
        """Token ids as {"input_ids": …}: a list, or lists of them that may differ in length."""
        if isinstance(text, str):
            return {"input_ids": self.encode(text, add_special_tokens)}
        return {"input_ids": [self.encode(one, add_special_tokens) for one in text]}

    def decode(self, tokens: Any, skip_special_tokens: bool = False, **_: Any) -> str:
        """The text of token ids."""
        listed = _listed(tokens)
        if skip_special_tokens:
            listed = [token for token in listed if token not in (self.bos_token_id, self.eos_token_id)]
        return self._model.to_string(listed)

    def batch_decode(self, sequences: Iterable[Any], **options: Any) -> list[str]:
        """The text of each sequence of token ids."""
        known: dict[tuple[int, ...], str] = {}
        texts = []
        for tokens in sequences:
            key = tuple(_listed(tokens))
            if key not in known:
                known[key] = self.decode(key, **options)
            texts.append(known[key])
        return texts

    def __len__(self) -> int:
        return self.vocab_size


def _listed(tokens: Any) -> list[int]:
    if hasattr(tokens, "tolist"):
        tokens = tokens.tolist()
    listed: Sequence[Any] = [tokens] if isinstance(tokens, int) else list(tokens)
    return [int(token) for token in listed]
