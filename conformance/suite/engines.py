"""The engines: each one's name in the table, and its environment in `environments/`."""

from typing import NamedTuple


class Known(NamedTuple):
    title: str
    environment: str


# By the name of its adapter in `engines/`.
ENGINES = {
    "tapline": Known("tapline", "plain"),
    "transformers": Known("transformers", "transformers"),
    "transformer_lens": Known("TransformerLens", "transformer-lens"),
    "nnsight": Known("nnsight", "nnsight"),
    "interp_engine": Known("interp-engine", "interp-engine"),
    "llama_cpp": Known("llama.cpp", "plain"),
}
