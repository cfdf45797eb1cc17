"""Parts of values in the residual stream of a qwen3 model in numpy, in float64, to check the native core against.

The native core goes down from a value to all parts. This program goes up: it adds one part to an empty stream, passes it
through the blocks above with attention weights and norms fixed, and reads the value there. Attention weights, block inputs
and ffn_out are the native core's, so that the linear pass alone is compared; then those of a float64 forward pass here.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gguf_reader  # noqa: E402


class Qwen3:
    def __init__(self, path):
        meta, tensors = gguf_reader.read(path)
        self.weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
        self.blocks = meta["qwen3.block_count"]
        self.heads = meta["qwen3.attention.head_count"]
        self.value_heads = meta.get("qwen3.attention.head_count_kv", self.heads)
        self.epsilon = float(np.float32(meta["qwen3.attention.layer_norm_rms_epsilon"]))
        self.width = meta.get("qwen3.attention.key_length", meta["qwen3.embedding_length"] // self.heads)
        self.base = meta.get("qwen3.rope.freq_base", 10000.0)
        self.head = self.weights.get("output.weight", self.weights["token_embd.weight"])

    def of(self, block, name):
        return self.weights[f"blk.{block}.{name}.weight"]

    def scale(self, rows):
        return 1 / np.sqrt((rows * rows).mean(-1, keepdims=True) + self.epsilon)

    def norm(self, rows, weight):
        return rows * self.scale(rows) * weight

    def split(self, rows, count):
        return rows.reshape(len(rows), count, self.width)

    def rotate(self, x):
        half = self.width // 2
        frequency = self.base ** (-np.arange(half) * 2 / self.width)
        angle = np.arange(len(x))[:, None, None] * frequency
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)

    def patterns(self, block, normed):
        q = self.norm(self.split(normed @ self.of(block, "attn_q").T, self.heads), self.of(block, "attn_q_norm"))
        k = self.norm(self.split(normed @ self.of(block, "attn_k").T, self.value_heads), self.of(block, "attn_k_norm"))
        q, k = self.rotate(q), np.repeat(self.rotate(k), self.heads // self.value_heads, 1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(self.width)
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        return scores / scores.sum(-1, keepdims=True)

    def mix(self, block, pattern, normed):
        """The heads' outputs, side by side."""
        v = np.repeat(self.split(normed @ self.of(block, "attn_v").T, self.value_heads), self.heads // self.value_heads, 1)
        return np.einsum("hij,jhd->ihd", pattern, v)

    def logit_direction(self, target, last):
        """The difference of logits as a function of the last block's output at its token."""
        row = self.head[target["token"]]
        row = row - (self.head[target["minus"]] if "minus" in target else self.head.mean(0))
        return row * self.weights["output_norm.weight"] * self.scale(last[target["position"]])

    def forward(self, tokens):
        x = self.weights["token_embd.weight"][tokens]
        inputs, patterns, ffn = [], [], []
        for block in range(self.blocks):
            inputs.append(x)
            normed = self.norm(x, self.of(block, "attn_norm"))
            patterns.append(self.patterns(block, normed))
            mixed = self.mix(block, patterns[-1], normed).reshape(len(x), -1)
            x = x + mixed @ self.of(block, "attn_output").T
            normed = self.norm(x, self.of(block, "ffn_norm"))
            gate = normed @ self.of(block, "ffn_gate").T
            up = normed @ self.of(block, "ffn_up").T
            ffn.append((gate / (1 + np.exp(-gate)) * up) @ self.of(block, "ffn_down").T)
            x = x + ffn[-1]
        return inputs, patterns, ffn, x


class Linear:
    """The model with one pass's attention weights and norms."""

    def __init__(self, model, inputs, patterns, ffn, last):
        self.model, self.inputs, self.patterns, self.ffn, self.last = model, inputs, patterns, ffn, last
        self.scales = [model.scale(rows) for rows in inputs]

    def heads(self, block, change):
        normed = change * self.scales[block] * self.model.of(block, "attn_norm")
        return self.model.mix(block, self.patterns[block], normed)

    def attention(self, block, change):
        return self.heads(block, change).reshape(len(change), -1) @ self.model.of(block, "attn_output").T

    def reader(self, target):
        """A function from a change of the stream before a block to its part of the value."""
        place = target["position"]
        if "token" in target:
            direction = self.model.logit_direction(target, self.last)
            top, half = self.model.blocks, False
        else:
            direction = np.array(target["direction"], np.float32).astype(np.float64)
            half = target["point"] == "mid"
            top = target["layer"] + (target["point"] == "block_out")

        def read(change, block):
            if block > top:
                return 0.0
            for each in range(block, top):
                change = change + self.attention(each, change)
            if half:
                change = change + self.attention(top, change)
            return float(change[place] @ direction)

        def read_head(change, block):
            """A change of what attention adds in a block."""
            if half and block == top:
                return float(change[place] @ direction)
            return read(change, block + 1) if block < top else 0.0

        return read, read_head

    def parts(self, target):
        read, read_head = self.reader(target)
        tokens = len(self.last)

        def alone(rows, token):
            only = np.zeros_like(rows)
            only[token] = rows[token]
            return only

        embeddings = [read(alone(self.inputs[0], token), 0) for token in range(tokens)]
        ffn = [
            read(alone(self.ffn[block], token), block + 1)
            for block in range(self.model.blocks)
            for token in range(tokens)
        ]
        heads = []
        for block in range(self.model.blocks):
            outputs = self.heads(block, self.inputs[block])
            matrix = self.model.of(block, "attn_output").reshape(-1, self.model.heads, self.model.width)
            for head in range(self.model.heads):
                written = outputs[:, head] @ matrix[:, head].T
                heads += [read_head(alone(written, token), block) for token in range(tokens)]
        return np.array(embeddings + ffn), np.array(heads)


def read_cases(folder):
    """The cases of a check, and a function that reads the array at a place."""
    with open(os.path.join(folder, "cases.json")) as file:
        cases = json.load(file)
    floats = np.fromfile(os.path.join(folder, "values.f32"), np.float32)

    def rows(place):
        count = int(np.prod(place["shape"]))
        return floats[place["at"] : place["at"] + count].reshape(place["shape"]).astype(np.float64)

    return cases, rows


def main(folder):
    cases, rows = read_cases(folder)
    doubles = np.fromfile(os.path.join(folder, "parts.f64"), np.float64)
    model = Qwen3(cases["model"])
    worst = {"precise": 0.0, "plain": 0.0, "heads": 0.0, "own": 0.0}
    parts = 0
    for case in cases["prompts"]:
        given = Linear(
            model,
            [rows(place) for place in case["inputs"]],
            [rows(place) for place in case["patterns"]],
            [rows(place) for place in case["ffn"]],
            rows(case["last"]),
        )
        own = Linear(model, *model.forward(np.array(case["tokens"])))
        for target in case["targets"]:
            mine, heads = given.parts(target)
            largest = np.abs(mine).max()

            def native(name, count):
                return doubles[target[name] : target[name] + count]

            precise, plain = native("precise", len(mine)), native("plain", len(mine))
            there = mine != 0
            if not np.array_equal(there, precise != 0):
                raise SystemExit("Parts that are zero differ.")
            parts += int(there.sum())
            off = np.abs(precise - mine)[there] / np.abs(mine[there])
            worst["precise"] = max(worst["precise"], float(off.max()))
            worst["plain"] = max(worst["plain"], float(np.abs(plain - mine).max() / largest))
            off = np.abs(native("heads", len(heads)) - heads).max() / np.abs(heads).max()
            worst["heads"] = max(worst["heads"], float(off))
            off = np.abs(precise - own.parts(target)[0]).max() / largest
            worst["own"] = max(worst["own"], float(off))
    json.dump({**worst, "parts": parts}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
