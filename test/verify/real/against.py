"""Compares what tapline computed of the real model with one of peers.py: figures as JSON.

    against.py PEER CASES.json VALUES.f32 FOLDER
"""
import json
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peers import PEERS, distance, intervention  # noqa: E402


def softmax(logits):
    return torch.softmax(logits.double(), -1).numpy()


class Worst(dict):
    def see(self, name, value):
        value = float(value)
        # NaN compares with nothing: it must stay.
        if name not in self or not value <= self[name]:
            self[name] = value

    def least(self, name, value):
        self[name] = min(self.get(name, np.inf), float(value))


def main(name, cases_path, values_path, folder):
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # two spin against each other where others compute, too
    with open(cases_path) as file:
        cases = json.load(file)
    values = np.memmap(values_path, np.float32, "r")

    def array(place):
        return values[place["at"] : place["at"] + int(np.prod(place["shape"]))].reshape(place["shape"])

    peer = PEERS[name](folder)
    worst = Worst()
    for case in cases["texts"]:
        worst.see("differing", peer.tokenizer.encode(case["text"], add_special_tokens=False) != case["tokens"])
    for case in cases["chats"]:
        text = peer.tokenizer.apply_chat_template(case["messages"], tokenize=False, add_generation_prompt=True)
        worst.see("template", text != case["text"])
        worst.see("template", peer.tokenizer.encode(text, add_special_tokens=False) != case["tokens"])

    final = []
    for case in cases["prompts"]:
        states, logits = peer.run(case["tokens"])
        ours, theirs = array(case["states"]), states.numpy()
        for block in range(len(theirs)):
            worst.see("blocks", distance(ours[block], theirs[block]))
            worst.see("token", max(map(distance, ours[block], theirs[block])))
        if "points" in case and hasattr(peer, "points"):
            for name, rows in peer.points(case["tokens"]).items():
                ours = array(case["points"][name])
                for block in range(len(rows)):
                    worst.see(name, distance(ours[block], rows[block]))
        if "attention" in case and hasattr(peer, "attention"):
            theirs = peer.attention(case["tokens"], case["attention"]["blocks"])
            for place, weights in zip(case["attention"]["weights"], theirs):
                worst.see("attention", distance(array(place), weights))
        final.append(states[:, -1])
        p, q = softmax(torch.tensor(array(case["logits"]))), softmax(logits[-1])
        worst.see("variation", np.abs(p - q).sum() / 2)
        lens = softmax(peer.lens(states[:, -1]))
        for block, (ids, found) in enumerate(zip(case["lens"]["ids"], case["lens"]["probabilities"])):
            worst.see("lens", np.abs(lens[block][ids] - found).max())
            worst.see("lens_order", lens[block].max() - lens[block][ids[0]])

    for case in cases["features"]:
        states, _ = peer.run(case["tokens"])
        worst.see("features", distance(array(case["states"]), states[case["layers"], -1].numpy()))

    plains = {}
    for case in cases["edits"]:
        tokens, layer = case["tokens"], case["layer"]
        donor = final[case["donor"]][layer]
        vector = donor - final[case["minus"]][layer] if case["kind"] == "steer" else donor
        first = len(tokens) - 1
        edit = (layer, first, intervention(case["kind"], case["strength"], vector))
        _, logits = peer.run(tokens + case["continuation"], edit)
        p = softmax(torch.tensor(array(case["logits"])))
        q = softmax(logits[first])
        if tuple(tokens) not in plains:
            plains[tuple(tokens)] = softmax(peer.run(tokens)[1][-1])
        plain = plains[tuple(tokens)]
        worst.see(case["kind"], np.abs(p - q).max())
        moved = "moved_" + case["kind"]
        worst[moved] = max(worst.get(moved, 0.0), float(np.abs(plain - q).sum() / 2))
        # Every token of the continuation is the peer's most probable one, or as probable up to a tie.
        for step, token in enumerate(case["continuation"]):
            row = softmax(logits[first + step])
            worst.see("continuation", row.max() - row[token])
    print(json.dumps(worst))


main(*sys.argv[1:])
