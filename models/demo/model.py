"""The network: qwen3 architecture (pre-norm, RoPE in halves, RMS-normed queries and keys, SwiGLU, tied embeddings)."""
import dataclasses
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Config:
    vocab: int = 1792
    layers: int = 8
    dim: int = 128
    heads: int = 4
    head_dim: int = 32
    ff: int = 256
    context: int = 512
    theta: float = 10000.0
    eps: float = 1e-6


class Norm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(n)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        inner = c.heads * c.head_dim
        self.attn_norm, self.ffn_norm = Norm(c.dim, c.eps), Norm(c.dim, c.eps)
        self.q_norm, self.k_norm = Norm(c.head_dim, c.eps), Norm(c.head_dim, c.eps)
        self.qkv = nn.Linear(c.dim, 3 * inner, bias=False)
        self.o = nn.Linear(inner, c.dim, bias=False)
        self.gate_up = nn.Linear(c.dim, 2 * c.ff, bias=False)
        self.down = nn.Linear(c.ff, c.dim, bias=False)

    def attend(self, x, mask, cos, sin, trace=None, cache=None):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.attn_norm(x)).view(b, t, 3, self.c.heads, self.c.head_dim).permute(2, 0, 3, 1, 4)
        q, k = rotate(self.q_norm(q), cos, sin), rotate(self.k_norm(k), cos, sin)
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat((cache["k"], k), 2), torch.cat((cache["v"], v), 2)
            cache["k"], cache["v"] = k, v
        w = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.c.head_dim) + mask, -1)
        heads = w @ v
        if trace is not None:
            trace["attention"].append(w)
            trace["heads"].append(heads)
        return self.o(heads.transpose(1, 2).reshape(b, t, -1))

    def feed(self, x):
        g, u = self.gate_up(self.ffn_norm(x)).chunk(2, -1)
        return self.down(F.silu(g) * u)


class Model(nn.Module):
    def __init__(self, c=None):
        super().__init__()
        self.c = c = c or Config()
        self.embed = nn.Embedding(c.vocab, c.dim)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = Norm(c.dim, c.eps)
        freq = c.theta ** (-torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        angle = torch.outer(torch.arange(c.context).float(), freq)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                scale = (2 * c.layers) ** -0.5 if name.endswith(("o.weight", "down.weight")) else 1.0
                nn.init.normal_(p, std=(0.5 if "embed" in name else 1.0) * c.dim ** -0.5 * scale)

    def causal(self, t):
        return torch.full((t, t), -1e9).triu(1)

    def forward(self, ids, positions=None, mask=None, edit=None, trace=None):
        """Final residual stream and the list of streams after each block (first: the embedding).

        edit: function (block index, stream) -> stream, applied to every block's output (-1: embedding).
        """
        t = ids.shape[1]
        if positions is None:
            cos, sin = self.cos[:t], self.sin[:t]
        else:
            cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        mask = self.causal(t) if mask is None else mask
        x = self.embed(ids)
        x = edit(-1, x) if edit else x
        streams = [x]
        for i, block in enumerate(self.blocks):
            x = x + block.attend(x, mask, cos, sin, trace)
            x = x + block.feed(x)
            x = edit(i, x) if edit else x
            streams.append(x)
        return x, streams

    def step(self, ids, caches):
        """Final stream of new tokens that follow those in the caches (one dict a block; empty at first)."""
        start, t = caches[0]["k"].shape[2] if caches[0] else 0, ids.shape[1]
        cos, sin, x = self.cos[start:start + t], self.sin[start:start + t], self.embed(ids)
        mask = torch.full((t, start + t), -1e9).triu(start + 1)
        for block, cache in zip(self.blocks, caches):
            x = x + block.attend(x, mask, cos, sin, None, cache)
            x = x + block.feed(x)
        return x

    def logits(self, x):
        return self.norm(x) @ self.embed.weight.T


def load(path):
    state = torch.load(path, map_location="cpu")
    model = Model(Config(**state["config"]))
    model.load_state_dict(state["weights"])
    return model.eval()


def save(model, path):
    torch.save({"config": dataclasses.asdict(model.c),
                "weights": {k: v.clone() for k, v in model.state_dict().items()}}, path)
