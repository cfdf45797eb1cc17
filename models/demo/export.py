"""Export to GGUF: weights as F16 (norms F32), the tokenizer, the chat template, the description."""
import argparse
import os

import numpy as np

import gguf
from model import load
from tokenizer import SPECIALS, Tokenizer

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
DESCRIPTION = ("A very small language model trained from scratch by the tapline project to be looked into: "
               "countries, capitals, languages, sentiment, names, lists, and short chat with thinking.")
# ChatML. Earlier thoughts are left out; enable_thinking=false prefills an empty think block.
TEMPLATE = """{%- set ns = namespace(last_user=-1) %}
{%- for message in messages %}
{%- if message.role == 'user' %}
{%- set ns.last_user = loop.index0 %}
{%- endif %}
{%- endfor %}
{%- for message in messages %}
{%- set content = message.content if message.content is string else '' %}
{%- set thought = message.reasoning_content if message.reasoning_content is string else '' %}
{%- if message.role == 'assistant' and '</think>' in content %}
{%- set thought = content.split('</think>')[0].split('<think>')[-1] %}
{%- set content = content.split('</think>')[-1] %}
{%- endif %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' %}
{%- if loop.index0 > ns.last_user and thought.strip() %}
{{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}
{%- endif %}
{{- content.lstrip('\\n') + '<|im_end|>\\n' }}
{%- else %}
{{- content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}"""


def metadata(c, tok):
    kinds = [NORMAL] * (len(tok.tokens) - len(SPECIALS))
    kinds += [USER_DEFINED if "think" in s else CONTROL for s in SPECIALS]
    return {
        "general.architecture": "qwen3", "general.type": "model", "general.name": "tapline demo",
        "general.description": DESCRIPTION, "general.license": "mit", "general.author": "tapline",
        "general.languages": ["en"], "general.size_label": "1.5M", "general.file_type": 1,
        "qwen3.block_count": c.layers, "qwen3.context_length": c.context, "qwen3.embedding_length": c.dim,
        "qwen3.feed_forward_length": c.ff, "qwen3.attention.head_count": c.heads,
        "qwen3.attention.head_count_kv": c.heads, "qwen3.attention.key_length": c.head_dim,
        "qwen3.attention.value_length": c.head_dim, "qwen3.attention.layer_norm_rms_epsilon": float(c.eps),
        "qwen3.rope.freq_base": float(c.theta), "qwen3.vocab_size": len(tok.tokens),
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": tok.tokens,
        "tokenizer.ggml.token_type": (gguf.I32, kinds),
        "tokenizer.ggml.merges": [" ".join(m) for m in tok.merges],
        "tokenizer.ggml.bos_token_id": tok.special("<|bos|>"),
        "tokenizer.ggml.eos_token_id": tok.special("<|endoftext|>"),
        "tokenizer.ggml.eot_token_id": tok.special("<|im_end|>"),
        "tokenizer.ggml.padding_token_id": tok.special("<|pad|>"),
        "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def tensors(model):
    def half(x):
        return x.detach().numpy().astype(np.float16)

    def full(x):
        return x.detach().numpy().astype(np.float32)

    yield "token_embd.weight", half(model.embed.weight)
    for i, b in enumerate(model.blocks):
        q, k, v = b.qkv.weight.chunk(3)
        gate, up = b.gate_up.weight.chunk(2)
        p = f"blk.{i}."
        yield p + "attn_norm.weight", full(b.attn_norm.weight)
        yield p + "attn_q.weight", half(q)
        yield p + "attn_q_norm.weight", full(b.q_norm.weight)
        yield p + "attn_k.weight", half(k)
        yield p + "attn_k_norm.weight", full(b.k_norm.weight)
        yield p + "attn_v.weight", half(v)
        yield p + "attn_output.weight", half(b.o.weight)
        yield p + "ffn_norm.weight", full(b.ffn_norm.weight)
        yield p + "ffn_gate.weight", half(gate)
        yield p + "ffn_up.weight", half(up)
        yield p + "ffn_down.weight", half(b.down.weight)
    yield "output_norm.weight", full(model.norm.weight)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="build/model.pt")
    p.add_argument("--tokenizer", default="build/tokenizer.json")
    p.add_argument("--out", default="tapline-demo.gguf")
    a = p.parse_args()
    model, tok = load(a.model), Tokenizer.load(a.tokenizer)
    gguf.write(a.out, metadata(model.c, tok), dict(tensors(model)))
    print(f"{a.out}: {os.path.getsize(a.out)} bytes, {sum(x.numel() for x in model.parameters())} parameters")


if __name__ == "__main__":
    main()
