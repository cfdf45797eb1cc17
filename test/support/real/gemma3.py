"""What transformers' Gemma3ForCausalLM is called and configured by, from a GGUF's metadata: see hugging_face.py."""

NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 3, 4, 6
SPACE = "\u2581"

BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k": "self_attn.k_proj",
    "attn_k_norm": "self_attn.k_norm",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def tensor(name, weight, meta):
    """GGUF stores the factor of a norm; transformers stores how far it is from one."""
    return weight - 1 if name.endswith("norm.weight") else weight


def configuration(meta):
    of = lambda key: meta["gemma3." + key]  # noqa: E731
    blocks = of("block_count")
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_logit_softcapping": None,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
        "final_logit_softcapping": None,
        "head_dim": of("attention.key_length"),
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": of("embedding_length"),
        "initializer_range": 0.02,
        "intermediate_size": of("feed_forward_length"),
        # Gemma 3's own constants: every sixth block attends to the whole text; the others rotate by another base.
        "layer_types": ["full_attention" if block % 6 == 5 else "sliding_attention" for block in range(blocks)],
        "max_position_embeddings": of("context_length"),
        "num_attention_heads": of("attention.head_count"),
        "num_hidden_layers": blocks,
        "num_key_value_heads": of("attention.head_count_kv"),
        "query_pre_attn_scalar": of("attention.key_length"),
        "rms_norm_eps": round(of("attention.layer_norm_rms_epsilon"), 12),
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": of("rope.freq_base")},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
        "sliding_window": of("attention.sliding_window"),
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "use_bidirectional_attention": False,
        "use_cache": True,
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
    }


def merges(tokens, scores):
    """SentencePiece joins the pair that makes the piece of the highest score: the same as a list of merges in that order."""
    ids = {token: i for i, token in enumerate(tokens)}
    found = []
    for token, i in ids.items():
        splits = [(token[:at], token[at:]) for at in range(1, len(token))]
        pairs = [pair for pair in splits if pair[0] in ids and pair[1] in ids]
        found += [(-scores[i], ids[left], ids[right], left, right) for left, right in pairs]
    return [[left, right] for _, _, _, left, right in sorted(found)]


def tokenizer(meta):
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    normal = [token if kind == NORMAL else "" for token, kind in zip(tokens, kinds)]
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
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": merges(normal, meta["tokenizer.ggml.scores"]),
        },
    }
