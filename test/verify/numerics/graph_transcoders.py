"""Edges of a graph with transcoders in numpy, in float64, to check the native core against.

The native core goes down from each node. This program goes up: it adds what one node writes to an empty stream, passes it
through the blocks with attention weights and norms fixed and MLPs reduced to their skip terms, and reads it at every node. The
rows of the pass, and which features are active, are the native core's; activations and errors are computed here.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attribution import Qwen3, read_cases  # noqa: E402


class Replaced:
    """The model with one pass's attention weights and norms, and MLPs replaced."""

    def __init__(self, model, case, rows):
        self.model = model
        self.inputs, self.patterns, self.mids, self.ffn = ([rows(place) for place in case[name]] for name in ("inputs", "patterns", "mids", "ffn"))
        self.last = rows(case["last"])
        self.tokens = len(self.last)
        self.sets = {int(layer): {name: rows(place) for name, place in one.items()} for layer, one in case["transcoders"].items()}
        self.nodes = [tuple(node) for node in case["nodes"]]
        self.zeros = case["zeros"]
        self.values, self.errors = [], []
        for block in range(model.blocks):
            left = self.ffn[block].copy()
            read = self.mids[block] * self.scale(block) * model.of(block, "ffn_norm")
            one = self.sets.get(block)
            for layer, token, feature in self.nodes:
                if layer == block:
                    self.values.append(read[token] @ one["W_enc"][feature] + one["b_enc"][0, feature])
            for at, (value, (_, token, _)) in enumerate(zip(self.values, self.nodes)):
                left[token] -= value * self.writes(at).get(block, 0)
            if one is not None:
                left -= one["b_dec"]
                if "W_skip" in one:
                    left -= read @ one["W_skip"].T
            left[: self.zeros] = 0
            self.errors.append(left)

    def writes(self, node):
        """What a feature adds to each block's MLP output per unit of its activation, by block."""
        layer, _, feature = self.nodes[node]
        return dict(enumerate(self.sets[layer]["W_dec"][feature], layer))

    def scale(self, block):
        return self.model.scale(self.mids[block])

    def direction(self, target):
        return self.model.logit_direction(target, self.last)

    def received(self, rows, block, targets):
        """What a change of the stream before a block adds to targets and nodes."""
        found = np.zeros(len(targets) + len(self.nodes))
        for each in range(block, self.model.blocks):
            normed = rows * self.model.scale(self.inputs[each]) * self.model.of(each, "attn_norm")
            mixed = self.model.mix(each, self.patterns[each], normed)
            rows = rows + mixed.reshape(len(rows), -1) @ self.model.of(each, "attn_output").T
            read = rows * self.scale(each) * self.model.of(each, "ffn_norm")
            one = self.sets.get(each)
            for at, (layer, token, feature) in enumerate(self.nodes):
                if layer == each:
                    found[len(targets) + at] = read[token] @ one["W_enc"][feature]
            if one is not None and "W_skip" in one:
                rows = rows + read @ one["W_skip"].T
        for at, target in enumerate(targets):
            found[at] = rows[target["position"]] @ self.direction(target)
        return found

    def edges(self, targets):
        def only(token, row):
            rows = np.zeros_like(self.last)
            rows[token] = row
            return rows

        columns = [self.received(only(token, self.inputs[0][token]), 0, targets) for token in range(self.tokens)]
        for at, (value, (_, token, _)) in enumerate(zip(self.values, self.nodes)):
            columns.append(sum(self.received(only(token, value * row), block + 1, targets) for block, row in self.writes(at).items()))
        columns += [np.zeros(len(targets) + len(self.nodes))] * (self.model.blocks * self.tokens)
        for block, errors in enumerate(self.errors):
            columns += [self.received(only(token, errors[token]), block + 1, targets) for token in range(self.tokens)]
        values = [self.last[target["position"]] @ self.direction(target) for target in targets]
        return np.array(columns).T, np.array(values + self.values)


def main(folder):
    cases, rows = read_cases(folder)
    doubles = np.fromfile(os.path.join(folder, "edges.f64"), np.float64)
    model = Qwen3(cases["model"])
    worst = {"precise": 0.0, "plain": 0.0, "values": 0.0, "frozen": 0.0}
    count = 0
    for case in cases["prompts"]:
        replaced = Replaced(model, case, rows)
        mine, values = replaced.edges(case["targets"])
        size = np.maximum(np.abs(mine).max(1), np.abs(values))
        wide = case["columns"]
        for name in ("precise", "plain"):
            native = doubles[case[name] : case[name] + len(mine) * wide].reshape(len(mine), wide)[:, : mine.shape[1]]
            least = (1e-3 if name == "precise" else 1) * size[:, None]
            worst[name] = max(worst[name], float((np.abs(native - mine) / np.maximum(np.abs(mine), least)).max()))
        native = doubles[case["values"] : case["values"] + len(values)]
        worst["values"] = max(worst["values"], float((np.abs(native - values) / np.abs(values)).max()))
        for at, node in enumerate(case["tried"]):
            frozen = doubles[case["frozen"] + at * len(mine) : case["frozen"] + (at + 1) * len(mine)]
            wanted = mine[:, replaced.tokens + node]
            worst["frozen"] = max(worst["frozen"], float(np.abs(frozen - wanted).max() / np.abs(wanted).max()))
        count += int((mine != 0).sum())
    json.dump({**worst, "edges": count}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
