"""Trains a TopK dictionary in PyTorch as it is usually written, or by SAELens's own trainer; seconds and losses.

    sparse_dictionary.py FOLDER

FOLDER holds input.json, as test/support/reference.ts writes it: kind (dense or saelens), path of float32 rows
[rows, hidden], and the settings; where first weights are given, encoder and decoder [features, hidden]. Rows enter as
(x - mean) / scale, as tapline's trainer takes them.
"""
import json
import os
import sys
import time

import numpy as np
import torch

given = json.load(open(os.path.join(sys.argv[1], "input.json")))
hidden, features, k, batch, steps = (given[name] for name in ("hidden", "features", "k", "batch", "steps"))
torch.set_num_threads(given["threads"])
torch.manual_seed(given["seed"])
rows = torch.from_numpy(np.fromfile(given["path"], "<f4").reshape(-1, hidden))
train = rows[: given["train_rows"]]
mean = train.mean(0)
scale = (train - mean).norm(dim=1).mean() / hidden**0.5
train = (train - mean) / scale
held_out = (rows[given["train_rows"] :] - mean) / scale


def first_weights(name):
    """A matrix [features, hidden] that the training begins with, or None."""
    if name not in given:
        return None
    return torch.from_numpy(np.fromfile(os.path.join(sys.argv[1], name), "<f4").reshape(features, hidden))


def batches():
    while True:
        order = torch.randperm(len(train))
        for first in range(0, len(train) - batch + 1, batch):
            yield train[order[first : first + batch]]


class Dense(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = torch.nn.Parameter(first_weights("decoder"))
        self.encoder = torch.nn.Parameter(first_weights("encoder").T.clone())
        self.encoder_bias = torch.nn.Parameter(torch.zeros(features))
        self.decoder_bias = torch.nn.Parameter(torch.zeros(hidden))

    def forward(self, x):
        values, indices = torch.topk(x @ self.encoder + self.encoder_bias, k, sorted=False)
        f = torch.zeros(len(x), features).scatter(1, indices, values.relu())
        return f @ self.decoder + self.decoder_bias


def dense():
    model = Dense()
    optimizer = torch.optim.Adam(model.parameters(), lr=given["learning_rate"], fused=True)

    def step(x):
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        # Decoder rows keep their length of 1 (Gao et al. 2024, section A.1).
        rows, gradient = model.decoder.data, model.decoder.grad
        gradient -= (gradient * rows).sum(1, keepdim=True) * rows
        optimizer.step()
        rows /= rows.norm(dim=1, keepdim=True)

    return step, model


def saelens():
    from sae_lens import TopKTrainingSAE, TopKTrainingSAEConfig
    from sae_lens.config import SAETrainerConfig
    from sae_lens.training.sae_trainer import SAETrainer

    sae = TopKTrainingSAE(
        TopKTrainingSAEConfig(
            d_in=hidden, d_sae=features, k=k, dtype="float32", device="cpu", normalize_activations="none",
        )
    )
    if "decoder" in given:
        sae.W_dec.data = first_weights("decoder")
        sae.W_enc.data = first_weights("encoder").T.contiguous()
    config = SAETrainerConfig(
        total_training_samples=steps * batch, train_batch_size_samples=batch, lr=given["learning_rate"],
        lr_end=given["learning_rate"] / 10, device="cpu",
    )
    trainer = SAETrainer(cfg=config, sae=sae, data_provider=batches())

    def step(x):
        trainer.step(x)
        trainer.n_training_steps += 1

    def rebuilt(x):
        features_of = sae.encode(x)
        return sae.decode(features_of)

    return step, rebuilt


step, model = dense() if given["kind"] == "dense" else saelens()
seconds = []
for x, _ in zip(batches(), range(steps)):
    start = time.process_time() if given["processor"] else time.perf_counter()
    step(x)
    seconds.append((time.process_time() if given["processor"] else time.perf_counter()) - start)
with torch.no_grad():
    error = (model(held_out) - held_out).pow(2)
    explained = 1 - (error.sum() / (held_out - held_out.mean(0)).pow(2).sum()).item()
print(json.dumps({"seconds": seconds, "error": error.mean().item(), "explained": explained}))
