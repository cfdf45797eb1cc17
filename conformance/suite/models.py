"""Tiny models with random weights, each as a GGUF file and, with the same weights, as a Hugging Face folder.

The weights are bytes of SHAKE-128 of a tensor's name, so every machine gets the same files. A model's description lists the
tensors as a GGUF file has them; `suite/hugging_face.py` writes the folder.
"""

import hashlib
import os
from dataclasses import dataclass, field

import numpy as np

from suite import gguf

BOS, EOS, PAD, UNKNOWN = 256, 257, 258, 259
VOCABULARY = 264
LAYERS = 4


@dataclass
class Model:
    name: str
    width: int = 128
    heads: int = 4
    kv_heads: int = 2
    head: int = 32
    mlp: int = 256
    layers: int = LAYERS
    experts: int = 0
    bos: bool = False
    """Whether the tokenizer adds BOS in front of a text."""
    epsilon: float = 1e-5
    metadata: dict = field(default_factory=dict)


MODELS = {
    model.name: model
    for model in [
        Model("llama", width=256, heads=8, kv_heads=4, bos=True),
        # Blocks 0 to 4 attend to the last 16 tokens, block 5 to all, with a different base of its rotations.
        Model(
            "gemma3",
            layers=6,
            bos=True,
            epsilon=1e-6,
            metadata={"attention.sliding_window": 16, "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4},
        ),
        Model("qwen3", epsilon=1e-6),
        Model("qwen3moe", mlp=64, experts=4, epsilon=1e-6),
        Model("olmo2", kv_heads=4, epsilon=1e-6),
        Model("phi3", metadata={"rope.scaling.original_context_length": 256}),
        Model("gpt2", kv_heads=4, bos=False),
        Model("gptneox", kv_heads=4, metadata={"use_parallel_residual": True}),
    ]
}


def random_weights(name, shape):
    """Multiples of 2^-13 between -1/8 and 1/8 (of 2^-12 around 1 for norms): exact in 32 and in 16 bits."""
    count = int(np.prod(shape))
    numbers = np.frombuffer(hashlib.shake_128(name.encode()).digest(2 * count), "<u2")
    values = ((numbers >> 5).astype(np.float32) - 1024) / 8192
    if name.endswith("norm.weight"):
        values = 1 + 2 * values
    return values.reshape(shape).astype(np.float32)


def shapes(model):
    """Tensors of a GGUF file, as [out, in]."""
    m, kv, heads = model, model.kv_heads * model.head, model.heads * model.head
    found = {"token_embd": (VOCABULARY, m.width), "output": (VOCABULARY, m.width)}
    vectors = {"output_norm": m.width}
    layer_norms = m.name in ("gpt2", "gptneox")
    if m.name == "gemma3":
        del found["output"]
    if m.name == "gpt2":
        found["position_embd"] = (256, m.width)
    for block in range(m.layers):
        at = f"blk.{block}."
        if m.name != "olmo2":
            vectors[f"{at}attn_norm"] = vectors[f"{at}ffn_norm"] = m.width
        if m.name in ("gemma3", "olmo2"):
            vectors[f"{at}post_attention_norm"] = vectors[f"{at}post_ffw_norm"] = m.width
        if m.name in ("gemma3", "qwen3", "qwen3moe"):
            vectors[f"{at}attn_q_norm"] = vectors[f"{at}attn_k_norm"] = m.head
        if m.name == "olmo2":
            vectors[f"{at}attn_q_norm"], vectors[f"{at}attn_k_norm"] = heads, kv
        if layer_norms or m.name == "phi3":
            found[f"{at}attn_qkv"] = (heads + 2 * kv, m.width)
        else:
            found.update({f"{at}attn_q": (heads, m.width), f"{at}attn_k": (kv, m.width), f"{at}attn_v": (kv, m.width)})
        found[f"{at}attn_output"] = (m.width, heads)
        if m.experts:
            found[f"{at}ffn_gate_inp"] = (m.experts, m.width)
            found[f"{at}ffn_gate_exps"] = found[f"{at}ffn_up_exps"] = (m.experts, m.mlp, m.width)
            found[f"{at}ffn_down_exps"] = (m.experts, m.width, m.mlp)
            continue
        if not layer_norms and m.name != "phi3":
            found[f"{at}ffn_gate"] = (m.mlp, m.width)
        found[f"{at}ffn_up"] = (2 * m.mlp if m.name == "phi3" else m.mlp, m.width)
        found[f"{at}ffn_down"] = (m.width, m.mlp)
    tensors = {f"{name}.weight": shape for name, shape in found.items()}
    tensors.update({f"{name}.weight": (length,) for name, length in vectors.items()})
    if layer_norms:
        biased = [*vectors, *(name for name in found if "attn_" in name or "ffn_" in name)]
        tensors.update({f"{name}.bias": (tensors[f"{name}.weight"][0],) for name in biased})
    return tensors


def weights(model):
    return {name: random_weights(f"{model.name} {name}", shape) for name, shape in shapes(model).items()}


def byte_letters():
    """The letter of each byte in byte-level vocabularies: itself if it prints, else one from 256 on."""
    prints = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in prints]
    return {**{byte: chr(byte) for byte in prints}, **{byte: chr(256 + at) for at, byte in enumerate(others)}}


def vocabulary():
    """ASCII's bytes, words that no text contains, special tokens, and one merge: every token's text is valid by itself."""
    letters = byte_letters()
    tokens = [letters[byte] for byte in range(128)] + [f"w{number}" for number in range(128, BOS)]
    tokens += ["<s>", "</s>", "<pad>", "<unk>", letters[32] + "t"]
    return tokens + [f"<unused{number}>" for number in range(VOCABULARY - len(tokens))]


MERGE = f"{byte_letters()[32]} t"


def metadata(model):
    m = model
    eps = "attention.layer_norm_epsilon" if m.name in ("gpt2", "gptneox") else "attention.layer_norm_rms_epsilon"
    own = {
        "context_length": 256,
        "embedding_length": m.width,
        "block_count": m.layers,
        "feed_forward_length": m.mlp,
        "attention.head_count": m.heads,
        "attention.head_count_kv": m.kv_heads,
        "attention.key_length": m.head,
        "attention.value_length": m.head,
        eps: m.epsilon,
    }
    if m.name != "gpt2":
        own |= {"rope.dimension_count": m.head, "rope.freq_base": 1e4}
    if m.experts:
        own |= {"expert_count": m.experts, "expert_used_count": 2, "expert_feed_forward_length": m.mlp}
    own |= m.metadata
    kinds = [3 if BOS <= token <= UNKNOWN else 1 for token in range(VOCABULARY)]
    return {
        "general.architecture": m.name,
        "general.name": "conformance",
        "general.file_type": 0,
        **{f"{m.name}.{key}": value for key, value in own.items()},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": vocabulary(),
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [MERGE],
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOS,
        "tokenizer.ggml.padding_token_id": PAD,
        "tokenizer.ggml.unknown_token_id": UNKNOWN,
        "tokenizer.ggml.add_bos_token": m.bos,
    }


def write_gguf(model, path):
    gguf.write(path, metadata(model), weights(model))
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def gguf_path(folder, name, form="F32"):
    return os.path.join(folder, f"{name}-{form}.gguf")
