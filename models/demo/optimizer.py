"""Muon for the matrices of the blocks (momentum, then the nearest orthogonal matrix), AdamW for the rest."""
import torch


def orthogonal(g, steps=5):
    """Newton-Schulz iteration: pushes all singular values of each matrix in the batch towards 1."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = g.shape[-2] > g.shape[-1]
    x = g.transpose(-1, -2) if tall else g
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.transpose(-1, -2)
        x = a * x + (b * s + c * (s @ s)) @ x
    return x.transpose(-1, -2) if tall else x


class Muon:
    """One weight; `parts` matrices stacked in it (queries, keys, values) are treated one by one."""

    def __init__(self, p, parts):
        self.p, self.parts, self.m = p, parts, torch.zeros_like(p)

    def step(self, g, rate, lr=0.02, decay=0.05):
        self.m.mul_(0.95).add_(g)
        u = (g + 0.95 * self.m).view(self.parts, -1, g.shape[1])
        u = orthogonal(u) * max(1.0, u.shape[1] / u.shape[2]) ** 0.5
        self.p.mul_(1 - rate * lr * decay).add_(u.reshape(g.shape), alpha=-rate * lr)


class Adam:
    def __init__(self, p):
        self.p, self.m, self.v, self.t = p, torch.zeros_like(p), torch.zeros_like(p), 0

    def step(self, g, rate, lr=0.003, decay=0.05):
        self.t += 1
        self.m.mul_(0.9).add_(g, alpha=0.1)
        self.v.mul_(0.95).addcmul_(g, g, value=0.05)
        u = (self.m / (1 - 0.9 ** self.t)) / ((self.v / (1 - 0.95 ** self.t)).sqrt() + 1e-8)
        if self.p.dim() == 2:
            self.p.mul_(1 - rate * lr * decay)
        self.p.sub_(u, alpha=rate * lr)


def optimizers(model, rank):
    """[(index of the parameter, optimizer)]: each of the two processes updates half of the model."""
    out = []
    for i, (name, p) in enumerate(model.named_parameters()):
        mine = int(name.split(".")[1]) % 2 == rank if name.startswith("blocks") else rank == 0
        if not mine:
            continue
        parts = 3 if "qkv" in name else 2 if "gate_up" in name else 1
        out.append((i, Muon(p.data, parts) if p.dim() == 2 and "embed" not in name else Adam(p.data)))
    return out
