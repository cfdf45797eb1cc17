"""A linear probe and a sparse autoencoder on the same activations, as one writes them with scikit-learn and PyTorch."""
import torch


def probe_and_sae(rows, labels, train, n_features, steps):
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    labels, train = np.array(labels), np.array(train) == 1
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=10000))
    probe.fit(rows[train], labels[train])
    accuracy = probe.score(rows[~train], labels[~train])
    return {"accuracy": float(accuracy), "loss": sae_loss(torch.tensor(rows[train]), n_features, steps)}


@torch.enable_grad()
def sae_loss(x, n_features, steps):
    """The loss and steps of tapline's own: mean squared error and the L1 of features times decoder norms, by Adam."""
    hidden = x.shape[1]
    x = x - x.mean(0)
    x = x / (x.norm(dim=1).mean() / hidden**0.5)
    torch.manual_seed(0)
    decoder = torch.nn.functional.normalize(torch.randn(hidden, n_features), dim=0)
    encoder = decoder.T.clone()
    biases = torch.zeros(n_features), torch.zeros(hidden)
    parameters = [each.requires_grad_() for each in (encoder, decoder, *biases)]
    optimizer = torch.optim.Adam(parameters, lr=0.06 / hidden**0.5)
    l1 = 0.11 * hidden**0.5
    for _ in range(steps):
        optimizer.zero_grad()
        active = torch.relu(x @ encoder.T + biases[0])
        error = active @ decoder.T + biases[1] - x
        loss = error.square().mean() + l1 * (active * decoder.norm(dim=0)).sum(1).mean() / hidden
        loss.backward()
        optimizer.step()
    return float(loss.detach())
