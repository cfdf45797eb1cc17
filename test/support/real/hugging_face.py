"""Writes the folder that transformers reads from the GGUF of a Llama or Gemma 3: safetensors in F32, configuration,
tokenizer.

    hugging_face.py F32.gguf ORIGINAL.gguf FOLDER

The weights come from F32.gguf. Before anything is written, every tensor is compared with ORIGINAL.gguf as NumPy
dequantises it; afterwards the written file is read back and compared again. Needs NumPy only.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "verify", "numerics"))
import gemma3  # noqa: E402
import gguf_reader  # noqa: E402

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
# The last bit of float32: llama.cpp may multiply and add in one rounding where NumPy takes two.
ROUNDING = 2.0**-22

BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hf_name(name, block_names):
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    _, block, part, _ = name.split(".")
    return f"model.layers.{block}.{block_names[part]}.weight"


def half_split(weight, heads):
    """GGUF keeps rotary pairs of a Llama side by side, transformers half a head apart."""
    rows, inner = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, inner).swapaxes(1, 2).reshape(rows, inner)


def check_same(name, weight, reference):
    bound = ROUNDING * np.maximum(np.abs(reference).max(), 1e-30)
    worst = np.abs(weight - reference).max()
    if weight.shape != reference.shape or not worst <= bound:
        raise SystemExit(f"{name} differs from the dequantised original by {worst}, more than {bound}.")
    return float(worst / bound * ROUNDING)


def write_safetensors(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor, np.float32).tobytes())


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(data, np.float32, int(np.prod(entry["shape"])), 8 + length + entry["data_offsets"][0])
        .reshape(entry["shape"])
        for name, entry in header.items()
    }


def configuration(meta):
    of = lambda key: meta["llama." + key]  # noqa: E731
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
        "hidden_act": "silu",
        "hidden_size": of("embedding_length"),
        "initializer_range": 0.02,
        "intermediate_size": of("feed_forward_length"),
        "max_position_embeddings": of("context_length"),
        "mlp_bias": False,
        "num_attention_heads": of("attention.head_count"),
        "num_hidden_layers": of("block_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "rms_norm_eps": round(of("attention.layer_norm_rms_epsilon"), 12),
        "rope_scaling": None,
        "rope_theta": of("rope.freq_base"),
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "use_cache": True,
        "vocab_size": of("vocab_size"),
    }


def tokenizer(meta):
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": i,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kinds[i] == CONTROL,
            }
            for i, token in enumerate(tokens)
            if kinds[i] in (CONTROL, USER_DEFINED)
        ],
        "normalizer": None,
        # llama.cpp's "smollm": each digit by itself, then GPT-2's expression.
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": meta["tokenizer.ggml.merges"],
        },
    }


def tokenizer_configuration(meta):
    token = lambda kind: meta["tokenizer.ggml.tokens"][meta[f"tokenizer.ggml.{kind}_token_id"]]  # noqa: E731
    template = meta.get("tokenizer.chat_template")
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": token("bos"),
        "eos_token": token("eos"),
        "pad_token": token("padding"),
        "unk_token": token("unknown"),
        "clean_up_tokenization_spaces": False,
        "model_max_length": meta[meta["general.architecture"] + ".context_length"],
        **({} if template is None else {"chat_template": template}),
    }


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(value, file, ensure_ascii=False)


def llama_tensor(name, weight, meta):
    heads = {"attn_q": meta["llama.attention.head_count"], "attn_k": meta["llama.attention.head_count_kv"]}
    part = name.split(".")[-2]
    return half_split(weight, heads[part]) if part in heads else weight


def main(f32, original, folder):
    meta, weights = gguf_reader.read(f32)
    family = (meta["general.architecture"], meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"])
    if family == ("llama", "gpt2", "smollm"):
        tensor, block_names, configure, tokens = llama_tensor, BLOCK_NAMES, configuration, tokenizer
    elif family == ("gemma3", "llama", "default"):
        tensor, block_names, configure, tokens = gemma3.tensor, gemma3.BLOCK_NAMES, gemma3.configuration, gemma3.tokenizer
    else:
        raise SystemExit(f"This writes Llama models with SmolLM's tokenizer and Gemma 3; the file is {family}.")
    _, references = gguf_reader.read(original)
    if set(weights) != set(references):
        raise SystemExit("The two files do not hold the same tensors.")
    worst = max(check_same(name, weight, references[name]) for name, weight in weights.items())
    tensors = {hf_name(name, block_names): tensor(name, weight, meta) for name, weight in weights.items()}
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.safetensors")
    write_safetensors(path, tensors)
    back = read_safetensors(path)
    if set(back) != set(tensors) or not all(np.array_equal(back[name], tensors[name]) for name in tensors):
        raise SystemExit("The safetensors file does not hold what was written into it.")
    write_json(folder, "config.json", configure(meta))
    write_json(folder, "generation_config.json", {"do_sample": False})
    write_json(folder, "tokenizer.json", tokens(meta))
    write_json(folder, "tokenizer_config.json", tokenizer_configuration(meta))
    print(json.dumps({"tensors": len(tensors), "worst": worst}))


main(*sys.argv[1:])
