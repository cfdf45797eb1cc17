"""Edges of an attribution graph of a qwen3 model in numpy, in float64, to check the native core against.

The native core goes down from each node. This program goes up: it adds what one node writes to an empty stream, passes it
through the heads that are not nodes, with attention weights and norms fixed, and reads it at every node. The rows of the pass
are the native core's.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attribution import Qwen3, read_cases  # noqa: E402


class Frozen:
    """The model with one pass's attention weights, norms and gates."""

    def __init__(self, model, case, rows):
        self.model = model
        self.inputs, self.patterns, self.heads, self.mids = ([rows(place) for place in case[name]] for name in ("inputs", "patterns", "heads", "mids"))
        self.last = rows(case["last"])
        self.tokens = len(self.last)
        self.neurons, self.of_gate, self.of_up = [], [], []
        for block, mid in enumerate(self.mids):
            normed = model.norm(mid, model.of(block, "ffn_norm"))
            gate, up = normed @ model.of(block, "ffn_gate").T, normed @ model.of(block, "ffn_up").T
            slope = 1 / (1 + np.exp(-gate))
            self.neurons.append(gate * slope * up)
            self.of_gate.append(slope * up / 2)
            self.of_up.append(gate * slope / 2)

    def nothing(self):
        return np.zeros_like(self.last)

    def only(self, token, row):
        rows = self.nothing()
        rows[token] = row
        return rows

    def mixed(self, block, change):
        """What a change of a block's input makes of its heads, [tokens, heads, width]."""
        normed = change * self.model.scale(self.inputs[block]) * self.model.of(block, "attn_norm")
        return self.model.mix(block, self.patterns[block], normed)

    def change(self, block, change):
        """What a change of an MLP's input makes of its neurons, each gate and up half."""
        normed = change * self.model.scale(self.mids[block]) * self.model.of(block, "ffn_norm")
        gate, up = normed @ self.model.of(block, "ffn_gate").T, normed @ self.model.of(block, "ffn_up").T
        return gate * self.of_gate[block] + up * self.of_up[block]

    def output(self, block, heads):
        return heads.reshape(len(heads), -1) @ self.model.of(block, "attn_output").T

    def down(self, block, neurons):
        return neurons @ self.model.of(block, "ffn_down").T

    def through_all(self, rows, block, middle):
        """A change of the stream passed through every block, MLPs too."""
        for each in range(block, self.model.blocks):
            if not (middle and each == block):
                rows = rows + self.output(each, self.mixed(each, rows))
            rows = rows + self.down(each, self.change(each, rows))
        return rows

    def direction(self, target):
        return self.model.logit_direction(target, self.last)


def edges(frozen, targets, nodes):
    model, width = frozen.model, frozen.model.width
    part = lambda index: slice(index * width, (index + 1) * width)  # noqa: E731
    directions = {}
    for at, (head, block, token, index) in enumerate(nodes):
        if not head:
            continue
        found = np.zeros(width)
        for k in range(width):
            unit = np.zeros(model.heads * width)
            unit[index * width + k] = 1
            top = frozen.through_all(frozen.only(token, frozen.output(block, unit[None])[0]), block, True)
            found[k] = sum(target["weight"] * top[target["position"]] @ frozen.direction(target) for target in targets)
        directions[at] = found

    def received(rows, block, middle):
        found = np.zeros(len(targets) + len(nodes))
        for each in range(block, model.blocks):
            if not (middle and each == block):
                heads = frozen.mixed(each, rows)
                for at, (head, layer, token, index) in enumerate(nodes):
                    if head and layer == each:
                        found[len(targets) + at] = heads[token, index] @ directions[at]
                        heads[token, index] = 0
                rows = rows + frozen.output(each, heads)
            neurons = frozen.change(each, rows)
            for at, (head, layer, token, index) in enumerate(nodes):
                if not head and layer == each:
                    found[len(targets) + at] = neurons[token, index]
        for at, target in enumerate(targets):
            found[at] = rows[target["position"]] @ frozen.direction(target)
        return found

    columns = [received(frozen.only(token, frozen.inputs[0][token]), 0, False) for token in range(frozen.tokens)]
    rest = [neurons.copy() for neurons in frozen.neurons]
    for head, block, token, index in nodes:
        if head:
            only = np.zeros(model.heads * width)
            only[part(index)] = frozen.heads[block][token, part(index)]
            written = frozen.output(block, only[None])[0]
            columns.append(received(frozen.only(token, written), block, True))
        else:
            rest[block][token, index] = 0
            written = frozen.neurons[block][token, index] * model.of(block, "ffn_down")[:, index]
            columns.append(received(frozen.only(token, written), block + 1, False))
    for block in range(model.blocks):
        for token in range(frozen.tokens):
            columns.append(received(frozen.only(token, frozen.down(block, rest[block][token])), block + 1, False))
    values = [frozen.last[target["position"]] @ frozen.direction(target) for target in targets]
    for at, (head, block, token, index) in enumerate(nodes):
        values.append(frozen.heads[block][token, part(index)] @ directions[at] if head else frozen.neurons[block][token, index])
    return np.array(columns).T, np.array(values)


def main(folder):
    cases, rows = read_cases(folder)
    doubles = np.fromfile(os.path.join(folder, "edges.f64"), np.float64)
    model = Qwen3(cases["model"])
    worst = {"precise": 0.0, "plain": 0.0, "values": 0.0}
    count = 0
    for case in cases["prompts"]:
        frozen = Frozen(model, case, rows)
        mine, values = edges(frozen, case["targets"], case["nodes"])
        size = np.maximum(np.abs(mine).max(1), np.abs(values))
        for name in ("precise", "plain"):
            wide = case["columns"]
            native = doubles[case[name] : case[name] + len(mine) * wide].reshape(len(mine), wide)[:, : mine.shape[1]]
            if not np.array_equal(mine != 0, native != 0):
                raise SystemExit("Edges that are zero differ.")
            least = (1e-3 if name == "precise" else 1) * size[:, None]
            worst[name] = max(worst[name], float((np.abs(native - mine) / np.maximum(np.abs(mine), least)).max()))
        native = doubles[case["values"] : case["values"] + len(values)]
        worst["values"] = max(worst["values"], float((np.abs(native - values) / np.abs(values)).max()))
        count += int((mine != 0).sum())
    json.dump({**worst, "edges": count}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
