"""The sparse autoencoder's training in PyTorch, gradients by autograd, updates by torch.optim.Adam."""

import json
import time

import numpy
import torch

import inputs

given = inputs.read()
if "threads" in given:
    torch.set_num_threads(int(given["threads"]))
dtype = torch.float64 if given.get("double") else torch.float32
count = len(given["train"])
features = given["features"].reshape(count, -1)
hidden = features.shape[1]
train = given["train"] == 1
steps = int(given["steps"])
l1 = given["l1"]
rate = given["learning_rate"]

mean = features[train].astype(numpy.float64).mean(0)
centred = features.astype(numpy.float64) - mean
scale = numpy.linalg.norm(centred[train], axis=1).mean() / numpy.sqrt(hidden)
x = torch.tensor(centred / scale, dtype=dtype)
x_train = x[torch.tensor(train)]
x_test = x[torch.tensor(~train)]


def parameter(name, *shape):
    return torch.tensor(given[name].reshape(shape), dtype=dtype, requires_grad=True)


n_features = len(given["encoder_bias"])
encoder_weight = parameter("encoder_weight", n_features, hidden)
encoder_bias = parameter("encoder_bias", n_features)
decoder_weight = parameter("decoder_weight", hidden, n_features)
decoder_bias = parameter("decoder_bias", hidden)
optimizer = torch.optim.Adam([encoder_weight, encoder_bias, decoder_weight, decoder_bias], lr=rate, betas=(0.9, 0.999))


def parts(rows):
    active = torch.relu(torch.nn.functional.linear(rows, encoder_weight, encoder_bias))
    error = torch.nn.functional.linear(active, decoder_weight, decoder_bias) - rows
    penalty = (active * decoder_weight.norm(dim=0)).sum(1).mean() / hidden
    return active, error.square().mean(), penalty


warmup = round(0.05 * steps)
decay = round(0.2 * steps)
losses = []
start = time.perf_counter()
for step in range(steps):
    l1_share = min(1, (step + 1) / warmup) if warmup else 1
    for group in optimizer.param_groups:
        group["lr"] = rate * (min(1, (steps - step) / decay) if decay else 1)
    optimizer.zero_grad()
    _, mse, penalty = parts(x_train)
    losses.append((mse + l1 * penalty).detach())
    (mse + l1 * l1_share * penalty).backward()
    optimizer.step()
seconds = time.perf_counter() - start

with torch.no_grad():
    _, mse, penalty = parts(x_train)
    active, held_out, _ = parts(x_test)
    variation = (x_test - x_test.mean(0)).square().mean()
    print(
        json.dumps(
            {
                "losses": [float(loss) for loss in losses] + [float(mse + l1 * penalty)],
                "train_mse": float(mse),
                "held_out_mse": float(held_out),
                "explained_variance": float(1 - held_out / variation),
                "mean_active": float((active > 0).sum(1).to(dtype).mean()),
                "dead_features": int((~(active > 0).any(0)).sum()),
                "decoder_weight": decoder_weight.reshape(-1).tolist() if given.get("weights") else [],
                "seconds": seconds,
            }
        )
    )
