"""Writes a model's Hugging Face folder: the weights of its GGUF file under the names and in the order of transformers."""

import json
import os

from suite import safetensors
from suite.models import BOS, EOS, MERGE, PAD, UNKNOWN, VOCABULARY, vocabulary, weights

LLAMA_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k": "self_attn.k_proj",
    "attn_k_norm": "self_attn.k_norm",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
NAMES = {
    **dict.fromkeys(["llama", "qwen3", "qwen3moe", "olmo2"], LLAMA_NAMES),
    "phi3": {**LLAMA_NAMES, "ffn_up": "mlp.gate_up_proj"},
    "gemma3": {**LLAMA_NAMES, "ffn_norm": "pre_feedforward_layernorm"},
    "gpt2": {
        "attn_norm": "ln_1",
        "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj",
        "ffn_norm": "ln_2",
        "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj",
    },
    "gptneox": {
        "attn_norm": "input_layernorm",
        "attn_qkv": "attention.query_key_value",
        "attn_output": "attention.dense",
        "ffn_norm": "post_attention_layernorm",
        "ffn_up": "mlp.dense_h_to_4h",
        "ffn_down": "mlp.dense_4h_to_h",
    },
}
OUTER = {
    "gpt2": ("transformer.h", {"token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f"}),
    "gptneox": ("gpt_neox.layers", {"token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm", "output": "embed_out"}),
}
DEFAULT_OUTER = ("model.layers", {"token_embd": "model.embed_tokens", "output_norm": "model.norm"})


def halves(weight, heads):
    """GGUF keeps rotary pairs of a Llama next to each other, transformers half a head apart."""
    rows = weight.shape[0] // heads
    return weight.reshape(heads, rows // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def transformed(model, part, weight):
    if model.name == "llama" and part in ("attn_q", "attn_k"):
        return halves(weight, model.heads if part == "attn_q" else model.kv_heads)
    if model.name == "gemma3" and "norm" in part:
        return weight - 1  # transformers stores how far a factor is from one
    if model.name == "gpt2" and weight.ndim == 2 and part not in ("token_embd", "position_embd", "output"):
        return weight.T
    if model.name == "gptneox" and part == "attn_qkv":
        # Queries, keys and values of one head after another.
        rest = weight.shape[1:]
        return weight.reshape(3, model.heads, model.head, *rest).swapaxes(0, 1).reshape(weight.shape)
    return weight


def tensors(model):
    prefix, outer = OUTER.get(model.name, DEFAULT_OUTER)
    found = {}
    for name, weight in weights(model).items():
        *place, part, kind = name.split(".")
        new = transformed(model, part, weight)
        if not place:
            found[f"{outer.get(part, 'lm_head')}.{kind}"] = new
        elif part.endswith("_exps"):
            projection = part.removeprefix("ffn_").removesuffix("_exps")
            for expert, each in enumerate(new):
                found[f"{prefix}.{place[1]}.mlp.experts.{expert}.{projection}_proj.weight"] = each
        else:
            found[f"{prefix}.{place[1]}.{NAMES[model.name][part]}.{kind}"] = new
    return found


def configuration(model):
    m = model
    common = {
        "dtype": "float32",
        "vocab_size": VOCABULARY,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "use_cache": True,
    }
    if m.name == "gpt2":
        sizes = {"n_embd": m.width, "n_layer": m.layers, "n_head": m.heads, "n_inner": m.mlp, "n_positions": 256}
        dropout = dict.fromkeys(["resid_pdrop", "embd_pdrop", "attn_pdrop"], 0.0)
        other = {"activation_function": "gelu_new", "layer_norm_epsilon": m.epsilon, "tie_word_embeddings": False}
        return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **common, **sizes, **dropout, **other}
    common |= {
        "hidden_size": m.width,
        "num_hidden_layers": m.layers,
        "num_attention_heads": m.heads,
        "intermediate_size": m.mlp,
        "max_position_embeddings": 256,
        "tie_word_embeddings": m.name == "gemma3",
        "attention_dropout": 0.0,
    }
    if m.name == "gptneox":
        rope = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0}
        other = {"hidden_act": "gelu", "layer_norm_eps": m.epsilon, "use_parallel_residual": True, "hidden_dropout": 0.0}
        other |= {"rotary_pct": 1.0, "rotary_emb_base": 1e4, "rope_parameters": rope}
        return {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], **common, **other}
    rope = {"rope_type": "default", "rope_theta": 1e4}
    common |= {"num_key_value_heads": m.kv_heads, "head_dim": m.head, "rms_norm_eps": m.epsilon, "hidden_act": "silu"}
    common |= {"rope_parameters": rope, "attention_bias": False, "mlp_bias": False}
    kinds = {"llama": "Llama", "qwen3": "Qwen3", "qwen3moe": "Qwen3Moe", "olmo2": "Olmo2", "phi3": "Phi3", "gemma3": "Gemma3"}
    common["architectures"] = [f"{kinds[m.name]}ForCausalLM"]
    common["model_type"] = {"qwen3moe": "qwen3_moe", "gemma3": "gemma3_text"}.get(m.name, m.name)
    if m.experts:
        common |= {"num_experts": m.experts, "num_experts_per_tok": 2, "moe_intermediate_size": m.mlp, "norm_topk_prob": True}
        common |= {"decoder_sparse_step": 1, "mlp_only_layers": [], "router_aux_loss_coef": 0.0}
    if m.name == "phi3":
        common |= {"original_max_position_embeddings": 256, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "sliding_window": None}
    if m.name == "gemma3":
        local = {"rope_type": "default", "rope_theta": 1e4}
        common |= {
            "hidden_activation": "gelu_pytorch_tanh",
            "layer_types": ["full_attention" if block % 6 == 5 else "sliding_attention" for block in range(m.layers)],
            "query_pre_attn_scalar": m.head,
            "rope_parameters": {"full_attention": {**local, "rope_theta": 1e6}, "sliding_attention": local},
            "sliding_window": m.metadata["attention.sliding_window"],
            "attn_logit_softcapping": None,
            "final_logit_softcapping": None,
        }
    return common


def tokenizer(model):
    tokens = vocabulary()
    special = lambda token: {  # noqa: E731
        **{"id": token, "content": tokens[token], "single_word": False, "lstrip": False, "rstrip": False},
        **{"normalized": False, "special": True},
    }
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    begin = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [BOS], "tokens": ["<s>"]}},
    }
    return {
        **{"version": "1.0", "truncation": None, "padding": None, "normalizer": None},
        "added_tokens": [special(token) for token in range(BOS, UNKNOWN + 1)],
        "pre_tokenizer": byte_level,
        "post_processor": begin if model.bos else byte_level,
        "decoder": byte_level,
        "model": {
            **{"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None},
            **{"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False},
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [MERGE.split(" ")],
        },
    }


def write(model, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(safetensors.encoded(tensors(model), {"format": "pt"}))
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    files = {
        "config.json": configuration(model),
        "generation_config.json": {"do_sample": False, "eos_token_id": EOS, "pad_token_id": PAD, "bos_token_id": BOS},
        "tokenizer.json": tokenizer(model),
        "tokenizer_config.json": {
            **{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False},
            **{"model_max_length": 256, **names},
        },
    }
    for name, value in files.items():
        with open(os.path.join(folder, name), "w") as file:
            json.dump(value, file, ensure_ascii=False)
