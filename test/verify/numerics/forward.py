"""An independent forward pass of a qwen3 model in numpy, to check the native core against.

Float32 arithmetic on the GGUF's own weights, written from the published architecture: RMS norm before attention and
feed-forward, grouped-query attention with normalised queries and keys, rotary positions over half-split pairs,
SiLU-gated feed-forward. Reads what the native core computed, prints how far the two are apart as JSON.
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
        if meta["general.architecture"] != "qwen3":
            raise SystemExit(f"This forward pass is of qwen3, not of {meta['general.architecture']}.")
        self.weights = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
        self.n_layer = meta["qwen3.block_count"]
        self.n_head = meta["qwen3.attention.head_count"]
        self.n_head_kv = meta.get("qwen3.attention.head_count_kv", self.n_head)
        self.epsilon = np.float32(meta["qwen3.attention.layer_norm_rms_epsilon"])
        self.width = meta["qwen3.embedding_length"]
        self.d_head = meta.get("qwen3.attention.key_length", self.width // self.n_head)
        self.base = meta.get("qwen3.rope.freq_base", 10000.0)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.weights[name]

    def linear(self, x, name):
        return x @ self.weights[name].T

    def rotate(self, x):
        """x: [tokens, heads, d_head]; pairs are (i, i + d_head / 2)."""
        half = self.d_head // 2
        frequency = self.base ** (-np.arange(half, dtype=np.float64) * 2 / self.d_head)
        angle = np.arange(x.shape[0], dtype=np.float64)[:, None, None] * frequency
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def attention(self, x, block):
        def heads(kind, count):
            return self.linear(x, f"{block}.attn_{kind}.weight").reshape(len(x), count, self.d_head)

        q = self.rotate(self.norm(heads("q", self.n_head), f"{block}.attn_q_norm.weight"))
        k = self.rotate(self.norm(heads("k", self.n_head_kv), f"{block}.attn_k_norm.weight"))
        v = heads("v", self.n_head_kv)
        group = self.n_head // self.n_head_kv
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.float32(np.sqrt(self.d_head))
        future = np.triu(np.ones((len(x), len(x)), bool), 1)
        scores = np.where(future, np.float32(-np.inf), scores)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", scores, v).reshape(len(x), -1)
        return self.linear(mixed, f"{block}.attn_output.weight")

    def feed_forward(self, x, block):
        gate = self.linear(x, f"{block}.ffn_gate.weight")
        up = self.linear(x, f"{block}.ffn_up.weight")
        return self.linear(gate / (1 + np.exp(-gate)) * up, f"{block}.ffn_down.weight")

    def forward(self, tokens, edit=None, change=None, points=None, embedded=None):
        """Block outputs before any edit, a list of [tokens, width], and the last token's logits.

        edit: (layer, function of the last token's row). change: function of (layer, rows) that gives other rows.
        points: a dictionary that takes [tokens, width] of every block at each point inside it.
        embedded: (place, row) that replaces the token's embedding there.
        """
        x = self.weights["token_embd.weight"][tokens]
        if embedded is not None:
            x = x.copy()
            x[embedded[0]] = embedded[1]
        states = []
        for layer in range(self.n_layer):
            block = f"blk.{layer}"
            block_in = x
            attn_out = self.attention(self.norm(x, f"{block}.attn_norm.weight"), block)
            x = mid = x + attn_out
            ffn_in = self.norm(x, f"{block}.ffn_norm.weight")
            ffn_out = self.feed_forward(ffn_in, block)
            x = x + ffn_out
            if points is not None:
                inside = {"block_in": block_in, "attn_out": attn_out, "mid": mid, "ffn_in": ffn_in, "ffn_out": ffn_out}
                for name, rows in inside.items():
                    points.setdefault(name, []).append(rows)
            states.append(x)
            if edit is not None and edit[0] == layer:
                x = x.copy()
                x[-1] = edit[1](x[-1])
            if change is not None:
                x = change(layer, x)
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return states, self.norm(x[-1], "output_norm.weight") @ head.T


def intervention(kind, strength, vector):
    """The contract's definition for the last token's row, in its own words and not as an affine form."""
    s = np.float32(strength)
    if kind == "scale":
        return lambda h: h * s
    if kind == "ablate":
        return lambda h: h - s * h
    if kind == "patch":
        return lambda h: h + s * (vector - h)
    if kind == "steer":
        return lambda h: h + s * vector / np.linalg.norm(vector)
    unit = vector / np.linalg.norm(vector)
    if kind == "steer_row_norm":
        return lambda h: h + s * np.linalg.norm(h) * unit
    if kind == "project_out":
        return lambda h: h - s * (h @ unit) * unit
    if kind == "clamp":
        # The cosine between the row and the direction is brought into 0.4 to 0.6.
        def clamp(h):
            cosine = h @ unit / np.linalg.norm(h)
            return h + s * (np.clip(cosine, 0.4, 0.6) - cosine) * np.linalg.norm(h) * unit

        return clamp
    raise SystemExit(f"Unknown intervention {kind}.")


def softmax(logits):
    x = logits.astype(np.float64)
    x = np.exp(x - x.max())
    return x / x.sum()


def variation(a, b):
    return float(np.abs(softmax(a) - softmax(b)).sum() / 2)


def distance(a, b):
    """Relative L2 of the whole."""
    return float(np.linalg.norm((a - b).astype(np.float64)) / np.linalg.norm(b.astype(np.float64)))


def row_distance(a, b):
    """Relative L2 of each row, the worst."""
    return max(distance(x, y) for x, y in zip(a, b))


def main(folder):
    with open(os.path.join(folder, "cases.json")) as file:
        cases = json.load(file)
    floats = np.fromfile(os.path.join(folder, "values.f32"), np.float32)

    def array(place):
        return floats[place["at"] : place["at"] + int(np.prod(place["shape"]))].reshape(place["shape"])

    model = Qwen3(cases["model"])
    prompts = [np.array(prompt["tokens"]) for prompt in cases["prompts"]]
    results = {"blocks": 0.0, "rows": 0.0, "variation": 0.0, "interventions": {}, "later": 0.0, "moved": {}}
    results["points"] = {}
    results["contributions"] = 0.0
    plain = []
    for tokens, prompt in zip(prompts, cases["prompts"]):
        points = {}
        states, logits = model.forward(tokens, points=points)
        plain.append((states, logits))
        for name, all_rows in points.items():
            worst = max(distance(array(native), mine) for native, mine in zip(prompt["points"][name], all_rows))
            results["points"][name] = max(results["points"].get(name, 0.0), worst)
        # Contributions to a logit, from this pass's own parts: the final norm divides all of them by one number.
        target = prompt["decomposition"]["target_token_id"]
        scale = np.sqrt((states[-1][-1].astype(np.float64) ** 2).mean() + model.epsilon)
        row = model.weights.get("output.weight", model.weights["token_embd.weight"])[target].astype(np.float64)
        row = row * model.weights["output_norm.weight"] / scale
        parts = [points["block_in"][0][-1] @ row]
        for attention, mlp in zip(points["attn_out"], points["ffn_out"]):
            parts += [attention[-1] @ row, mlp[-1] @ row]
        apart = np.abs(np.array(parts) - np.array(prompt["decomposition"]["parts"])).max()
        results["contributions"] = max(results["contributions"], float(apart / np.abs(logits).max()))
        for layer, mine in enumerate(states):
            native = array(prompt["states"][layer])
            results["blocks"] = max(results["blocks"], distance(native, mine))
            results["rows"] = max(results["rows"], row_distance(native, mine))
        results["variation"] = max(results["variation"], variation(array(prompt["logits"]), logits))
    for case in cases["edits"]:
        kind, layer = case["kind"], case["layer"]
        # The donor's row is computed here, not taken from the native core.
        vector = plain[case["donor"]][0][layer][-1] if kind == "patch" else None
        if kind in ("steer", "steer_row_norm", "project_out", "clamp"):
            vector = plain[case["donor"]][0][layer][-1] - plain[case["minus"]][0][layer][-1]
        states, logits = model.forward(
            prompts[case["prompt"]], (layer, intervention(kind, case["strength"], vector))
        )
        apart = variation(array(case["logits"]), logits)
        results["interventions"][kind] = max(results["interventions"].get(kind, 0.0), apart)
        effect = variation(logits, plain[case["prompt"]][1])
        results["moved"][kind] = max(results["moved"].get(kind, 0.0), effect)
        if layer + 1 < model.n_layer:
            last = array(case["last"])
            results["later"] = max(results["later"], distance(last, states[-1][-1]))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
