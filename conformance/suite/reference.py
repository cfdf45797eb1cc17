"""A forward pass of the Llama and the Gemma 3 model in float64, with edits at every point: the expected results of edits.

Every run first compares it with llama.cpp's values of the same models, without edits and with a control vector.
"""

import numpy as np

from suite.models import weights


def rms(x, factor, epsilon):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + epsilon) * factor


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rotated(x, base, neighbours):
    """[tokens, heads, head]: pairs are neighbours (Llama's files), or half a head apart."""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None, None] * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = (x[..., ::2], x[..., 1::2]) if neighbours else (x[..., :half], x[..., half:])
    first, second = a * cos - b * sin, a * sin + b * cos
    return np.stack([first, second], -1).reshape(x.shape) if neighbours else np.concatenate([first, second], -1)


def edited(rows, edits, point, layer):
    """Rows [tokens, width] of a point after the edits there, each at its own positions."""
    for edit in edits:
        if (edit.point, edit.layer) != (point, layer):
            continue
        rows = rows.copy()
        chosen = [at for at in range(len(rows)) if edit.covers(at)]
        rows[chosen] = edit.applied(rows[chosen])
    return rows


class Reference:
    def __init__(self, model):
        self.model, self.gemma = model, model.name == "gemma3"
        self.weights = {name: each.astype(np.float64) for name, each in weights(model).items()}

    def attention(self, x, block):
        m, w = self.model, lambda name: self.weights[f"blk.{block}.{name}.weight"]  # noqa: E731
        q = (x @ w("attn_q").T).reshape(len(x), m.heads, m.head)
        k = (x @ w("attn_k").T).reshape(len(x), m.kv_heads, m.head)
        v = (x @ w("attn_v").T).reshape(len(x), m.kv_heads, m.head)
        local = self.gemma and block % 6 != 5
        if self.gemma:
            q, k = rms(q, w("attn_q_norm"), m.epsilon), rms(k, w("attn_k_norm"), m.epsilon)
        base = 1e6 if self.gemma and not local else 1e4
        q, k = rotated(q, base, not self.gemma), rotated(k, base, not self.gemma)
        k, v = (np.repeat(each, m.heads // m.kv_heads, 1) for each in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(m.head)
        distance = np.arange(len(x))[:, None] - np.arange(len(x))
        hidden = (distance < 0) | (local & (distance >= m.metadata.get("attention.sliding_window", 0)))
        pattern = softmax(np.where(hidden, -np.inf, scores))
        return pattern, np.einsum("hqk,khd->qhd", pattern, v).reshape(len(x), -1) @ w("attn_output").T

    def mlp(self, x, block):
        w = lambda name: self.weights[f"blk.{block}.{name}.weight"]  # noqa: E731
        gate, up = x @ w("ffn_gate").T, x @ w("ffn_up").T
        if self.gemma:
            active = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            active = gate / (1 + np.exp(-gate))
        return (active * up) @ w("ffn_down").T

    def run(self, tokens, edits=()):
        """Logits [tokens, vocabulary], and rows by (point, layer); those of an edited point are after its edits."""
        m, seen = self.model, {}
        norm = lambda rows, name: rms(rows, self.weights[f"{name}.weight"], m.epsilon)  # noqa: E731
        x = self.weights["token_embd.weight"][tokens]
        if self.gemma:
            x = x * np.sqrt(m.width)
        for block in range(m.layers):
            at = f"blk.{block}."
            seen["attention", block], part = self.attention(norm(x, at + "attn_norm"), block)
            if self.gemma:
                part = norm(part, at + "post_attention_norm")
            seen["attn_out", block] = edited(part, edits, "attn_out", block)
            x = x + seen["attn_out", block]
            part = self.mlp(norm(x, at + "ffn_norm"), block)
            if self.gemma:
                part = norm(part, at + "post_ffw_norm")
            seen["ffn_out", block] = edited(part, edits, "ffn_out", block)
            x = seen["block_out", block] = edited(x + seen["ffn_out", block], edits, "block_out", block)
        head = self.weights["token_embd.weight" if self.gemma else "output.weight"]
        return norm(x, "output_norm") @ head.T, seen

    def generate(self, tokens, count, edits=()):
        """The most probable continuation, and how close the second token came at the closest step."""
        found, closest = [], np.inf
        for _ in range(count):
            logits = self.run([*tokens, *found], edits)[0][-1]
            second, first = np.sort(logits)[-2:]
            closest = min(closest, first - second)
            found.append(int(np.argmax(logits)))
        return found, closest
