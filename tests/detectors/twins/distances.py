"""Distances in feature space once more: float64 NumPy, one image at a time, no oodscope."""

import numpy as np
import torch

from tests.detectors.twins.arithmetic import energy, softmax, unit
from tests.detectors.twins.first import mds, neighbours

CASES = {
    "rmds": [{}],
    "mahalanobis_pp": [{}],
    "rmds_pp": [{}],
    "relation": [{}, {"pow": 4}, {"bank_fraction": 0.3, "seed": 3}],
    "nnguide": [
        {},
        {"k": 10, "bank_fraction": 1.0},
        {"bank_fraction": 0.4, "seed": 3},
        {"k": "openood", "bank_fraction": 0.5},
    ],
    "ssd": [{}, {"parity": True}],
    "gmm_ddu": [{}],
    "residual": [{}, {"dim": 1}, {"dim": 11}],
    "maxcosine": [{}],
    "neco": [{}, {"dim": 3}, {"dim": 5, "times_logit": True}],
    "kpca": [{}, {"explained": 0.5, "gamma": 3.0, "width": 64}, {"rows": 100, "seed": 3}],
    # learnt by climbing: compared from equal state, see test_distances.py
    "gmm": [],
    "opengan": [],
}


def pinv(covariance):
    return np.linalg.pinv(covariance, hermitian=True, rcond=len(covariance) * np.finfo(float).eps)


def normalised(rows):
    return rows | {"features": np.array([unit(h) for h in rows["features"]])}


def rmds(train, test):
    h = train["features"]
    mean = h.mean(axis=0)
    precision = pinv(sum(np.outer(v - mean, v - mean) for v in h) / len(h))
    background = [(v - mean) @ precision @ (v - mean) for v in test["features"]]
    return mds(train, test) - np.array(background)


def mahalanobis_pp(train, test):
    return mds(normalised(train), normalised(test))


def rmds_pp(train, test):
    return rmds(normalised(train), normalised(test))


def ssd(train, test, parity=False):
    z = normalised(train)["features"]
    mean, deviation = z.mean(axis=0), z.std(axis=0)
    precision = np.linalg.pinv(sum(np.outer(v - mean, v - mean) for v in z) / len(z), hermitian=True, rcond=1e-6)
    shift = mean * (1 + deviation) if parity else mean
    return np.array([(v - shift) @ precision @ (v - shift) for v in normalised(test)["features"]])


def gmm_ddu(train, test):
    """Each class its Gaussian; a covariance that has no inverse gets a share of its mean variance."""
    parts = []
    for c in sorted(set(train["labels"])):
        own = train["features"][train["labels"] == c]
        mean = own.mean(axis=0)
        covariance = sum(np.outer(v - mean, v - mean) for v in own) / len(own)
        size = np.trace(covariance) / len(covariance)
        for share in (0, 1e-6, 1e-4, 1e-2, 1):
            raised = covariance + share * size * np.eye(len(mean))
            try:
                if min(np.diag(np.linalg.cholesky(raised))) ** 2 > 1e-8 * size:
                    break
            except np.linalg.LinAlgError:
                continue
        volume = np.linalg.slogdet(2 * np.pi * raised)[1]
        parts.append((np.log(len(own) / len(train["labels"])) - volume / 2, mean, np.linalg.inv(raised)))
    return np.array([energy([k - (h - m) @ p @ (h - m) / 2 for k, m, p in parts]) for h in test["features"]])


def shuffled_rows(count, seed):
    """The one thing that a twin cannot find by itself: the order that a seed stands for."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()


def relation(train, test, pow=1, bank_fraction=1.0, seed=0):
    count = len(train["features"])
    chosen = shuffled_rows(count, seed)[: round(bank_fraction * count)]
    bank = [(unit(train["features"][i]), softmax(train["logits"][i])) for i in chosen]

    def related(h, z):
        direction, chances = unit(h), softmax(z)
        kernels = [max(0.0, direction @ b) * np.dot(chances, q) for b, q in bank]
        return -sum(value**pow for value in kernels if value > 0.03)

    return np.array([related(h, z) for h, z in zip(test["features"], test["logits"])])


def nnguide(train, test, k="auto", bank_fraction=0.01, seed=0):
    order = shuffled_rows(len(train["features"]), seed)
    piles = {c: [i for i in order if train["labels"][i] == c] for c in set(train["labels"].tolist())}
    chosen, wanted = [], round(bank_fraction * len(order))
    while len(chosen) < wanted:
        # one of each class that has any left; in the last round, those that come first in the order
        heads = sorted((pile.pop(0) for pile in piles.values() if pile), key=order.index)
        chosen += heads[: wanted - len(chosen)]
    bank = [unit(train["features"][i]) * -energy(train["logits"][i]) for i in chosen]
    k = neighbours(k, 100, train["labels"][chosen])

    def guided(h, z):
        products = sorted((unit(h) @ b for b in bank), reverse=True)[:k]
        return energy(z) * sum(products) / len(products)

    return np.array([guided(h, z) for h, z in zip(test["features"], test["logits"])])


def residual(train, test, dim=6):
    origin = -np.linalg.pinv(train["weight"]) @ train["bias"]
    centred = train["features"] - origin
    values, vectors = np.linalg.eigh(sum(np.outer(v, v) for v in centred) / len(centred))
    outside = vectors[:, np.argsort(-values)][:, dim:]
    return np.array([np.linalg.norm((h - origin) @ outside) for h in test["features"]])


def maxcosine(train, test):
    return np.array([-max(unit(h) @ unit(w) for w in train["weight"]) for h in test["features"]])


def gmm(state, test):
    inverse, (_, log_volume) = np.linalg.inv(state["covariance"]), np.linalg.slogdet(2 * np.pi * state["covariance"])

    def density(point):
        exponents = [
            np.log(w) - ((point - m) @ inverse @ (point - m) + log_volume) / 2
            for w, m in zip(state["weights"], state["means"])
        ]
        return -energy(exponents)

    return np.array([-density((h - state["origin"]) @ state["axes"]) for h in test["features"]])


def opengan(state, test):
    def real(h):
        for layer in range(5):
            h = state[f"weight{layer}"] @ h + state[f"bias{layer}"]
            h = np.where(h > 0, h, 0.2 * h) if layer < 4 else h
        return h[0]

    return np.array([-real((h - state["mean"]) / state["scale"]) for h in test["features"]])


def components(variances, share):
    """How many of the largest it takes to hold this share of all."""
    count = 1
    while sum(variances[:count]) < share * sum(variances):
        count += 1
    return count


def neco(train, test, dim=None, times_logit=False):
    mean, spread = train["features"].mean(axis=0), train["features"].std(axis=0)
    standard = (train["features"] - mean) / spread
    values, vectors = np.linalg.eigh(sum(np.outer(v, v) for v in standard) / len(standard))
    order = np.argsort(-values)
    axes = vectors[:, order][:, : dim or components(values[order], 0.9)]

    def share(h, z):
        h = (h - mean) / spread
        return np.linalg.norm(h @ axes) / np.linalg.norm(h) * (max(z) if times_logit else 1.0)

    return np.array([-share(h, z) for h, z in zip(test["features"], test["logits"])])


def kpca(train, test, explained=0.8, gamma=2.0, width=1024, rows=20_000, seed=0):
    random = torch.Generator().manual_seed(seed)
    omega = torch.randn(train["features"].shape[1], width, generator=random, dtype=torch.float64).numpy()
    phase = torch.rand(width, generator=random, dtype=torch.float64).numpy()

    def mapped(h):
        return np.sqrt(2 / width) * np.cos(np.sqrt(2 * gamma) * (unit(h) @ omega) + 2 * np.pi * phase)

    bank = np.array([mapped(train["features"][i]) for i in shuffled_rows(len(train["features"]), seed)[:rows]])
    mean = bank.mean(axis=0)
    _, singular, axes = np.linalg.svd(bank - mean, full_matrices=False)
    axes = axes[: components(singular**2, explained)]

    def error(h):
        point = mapped(h) - mean
        return np.linalg.norm(point - axes.T @ (axes @ point))

    return np.array([error(h) for h in test["features"]])
