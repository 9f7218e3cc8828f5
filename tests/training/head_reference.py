"""One head at a time, as a tutorial would write it: nn.Linear, torch's Adam, masks and orders drawn in plain Python.

Imports nothing of oodscope; only the addresses of the random numbers are the same, so that weights can be compared.
"""

import hashlib
import math

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(z):
    """SplitMix64's finaliser, from Steele, Lea & Flood."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def digest(text):
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big"))


def words(seed, stage, purpose, count):
    """The first ``count`` random words of a task for a purpose."""
    with np.errstate(over="ignore"):
        key = np.array([seed % 2**64], dtype=np.uint64)
        stream = mixed(mixed(mixed(key * GOLDEN) + digest(f"0 heads {stage}")) + digest(purpose))
        return mixed(stream + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN)


def weights(seed, purpose, bound, *shape):
    high = (words(seed, "training", purpose, math.prod(shape)).astype(np.int64) >> 40).astype(np.float64)
    return torch.tensor((high + 0.5) / 2**23 * bound, dtype=torch.float32).reshape(shape)


def mask(seed, stage, purpose, rows, width, dropout):
    """1 / (share kept) where an entry is kept, row by row."""
    per_row = math.ceil(width / 4)
    table = words(seed, stage, purpose, rows * per_row).reshape(rows, per_row)
    lanes = np.stack(
        [(table >> np.uint64(16 * lane) & np.uint64(0xFFFF)).astype(np.uint16) for lane in range(4)], axis=2
    )
    signed = lanes.view(np.int16).reshape(rows, -1)[:, :width].astype(np.int64) + 2**15
    dropped = round(dropout * 2**16)
    return torch.tensor((signed >= dropped) / (1 - dropped / 2**16), dtype=torch.float32)


def shuffled(seed, stage, purpose, rows):
    return rows[np.argsort(words(seed, stage, purpose, len(rows)).astype(np.int64))]


def dealt(rows, step, steps):
    return rows[step * len(rows) // steps : (step + 1) * len(rows) // steps]


class Reference:
    """The two layers on embeddings divided by their root mean square over the training rows."""

    def __init__(self, recipe, embeddings, labels, train, val, seed, classes, outliers=None, start=None):
        self.recipe, self.x, self.y, self.seed = recipe, embeddings, labels, seed
        self.train, self.val, self.outliers = train, val, outliers
        self.stage = "training" if start is None else "exposure"
        self.scale = float(embeddings[train].square().mean().sqrt())
        width, hidden = embeddings.shape[1], recipe.hidden
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, classes)
        tensors = start or (
            weights(seed, "hidden", width**-0.5, width, hidden).T / self.scale,
            weights(seed, "hidden bias", width**-0.5, hidden),
            weights(seed, "output", hidden**-0.5, hidden, classes).T,
            weights(seed, "output bias", hidden**-0.5, classes),
        )
        with torch.no_grad():
            for parameter, value in zip(self.parameters(), tensors):
                parameter.copy_(value * self.scale if parameter is self.first.weight else value)
        counts = np.bincount(labels[train], minlength=classes)
        balanced = [len(train) / ((counts > 0).sum() * n) if n else 0.0 for n in counts]
        self.weight = torch.tensor(balanced if recipe.balanced else [1.0] * classes, dtype=torch.float32)

    def parameters(self):
        return [*self.first.parameters(), *self.second.parameters()]

    def result(self):
        values = [each.detach().clone() for each in self.parameters()]
        return [values[0] / self.scale, *values[1:]]

    def logits(self, x, place=None):
        p = self.recipe.dropout
        x = x / self.scale
        if place is not None and p:
            x = x * mask(self.seed, self.stage, f"embeddings {place}", *x.shape, p)
        h = self.first(x).relu()
        if place is not None and p:
            h = h * mask(self.seed, self.stage, f"features {place}", *h.shape, p)
        return self.second(h)

    def fit(self):
        recipe, best, best_accuracy, stale = self.recipe, None, -1.0, 0
        optimizer = torch.optim.Adam(self.parameters(), lr=recipe.learning_rate)
        steps = math.ceil(len(self.train) / recipe.batch_size)
        for epoch in range(1, recipe.epochs + 1):
            order = shuffled(self.seed, self.stage, f"order {epoch}", self.train)
            for step in range(steps):
                rows = dealt(order, step, steps)
                loss = cross_entropy(self.logits(self.x[rows], f"{epoch} {step}"), self.y[rows], weight=self.weight)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            accuracy = self.accuracy()
            stale += 1
            if accuracy > best_accuracy or not recipe.patience:
                best, best_accuracy, stale = (self.result(), epoch), accuracy, 0
            if recipe.patience and stale == recipe.patience:
                break
        return (*best, best_accuracy)

    def accuracy(self):
        with torch.no_grad():
            return float((self.logits(self.x[self.val]).argmax(1) == self.y[self.val]).double().mean())

    def expose(self, table):
        """Outlier exposure from the weights that it has."""
        recipe = self.recipe
        optimizer = torch.optim.Adam(self.parameters(), lr=recipe.learning_rate)
        steps = math.ceil(len(self.train) / recipe.batch_size)
        count = min(len(self.outliers), max(1, round(recipe.oe_share * len(self.train))))
        chosen = shuffled(self.seed, self.stage, "choice", self.outliers)[:count]
        for epoch in range(1, recipe.oe_epochs + 1):
            order = shuffled(self.seed, self.stage, f"order {epoch}", self.train)
            unknown = shuffled(self.seed, self.stage, f"outliers {epoch}", chosen)
            for step in range(steps):
                rows, out = dealt(order, step, steps), dealt(unknown, step, steps)
                loss = cross_entropy(self.logits(self.x[rows], f"{epoch} {step}"), self.y[rows], weight=self.weight)
                if len(out):
                    said = self.logits(table[out], f"outliers {epoch} {step}").log_softmax(1)
                    uniform = torch.full_like(said, 1 / said.shape[1])
                    loss = loss + recipe.oe_weight * kl_div(said, uniform, reduction="batchmean")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return self.result(), self.accuracy()
