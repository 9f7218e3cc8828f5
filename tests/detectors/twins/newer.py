"""Detectors of 2024 to 2026 once more: float64 NumPy, one image at a time, no oodscope."""

import math

import numpy as np

from tests.detectors.twins.arithmetic import energy, unit
from tests.detectors.twins.distances import pinv, shuffled_rows
from tests.detectors.twins.first import ebo, knn, mds, msp
from tests.detectors.twins.rectifiers import count_above, largest, rectified

CASES = {
    "logitgap": [{}, {"top": 1}, {"top": 1000}],
    "ras": [{}, {"by": "magnitude"}],
    "lts": [{}, {"percentile": 65}],
    "ora": [{}, {"reduce": "mean"}],
    "core": [{}],
    "grood": [{}, {"prototype": "mix"}],
    "cfood": [{}, {"quantile": 0.05, "bank_fraction": 0.2, "seed": 3}],
    "mahalanobis": [{}, {"beta": 0.5}, {"beta": 2.0}],
    "maha_free": [{}, {"beta": 0.0}, {"beta": 0.5}],
    "average": [{}, {"members": "msp, ebo, knn"}, {"combine": "sum_z"}],
}


def logitgap(train, test, top=5):
    def one(z):
        ranked = sorted(z, reverse=True)
        others = ranked[1 : top + 1]
        return -math.fsum(ranked[0] - v for v in others) / len(others)

    return np.array([one(z) for z in test["logits"]])


def ras(train, test, by="value"):
    key = abs if by == "magnitude" else float
    profile = np.mean([sorted(key(v) for v in h) for h in train["features"]], axis=0)

    def change(h):
        new = np.zeros_like(h)
        for usual, i in zip(profile, sorted(range(len(h)), key=lambda i: (key(h[i]), i))):
            new[i] = usual * np.sign(h[i]) if by == "magnitude" else usual
        return new

    return rectified(train, test, change)


def lts(train, test, percentile=90):
    def one(h):
        positive = np.maximum(h, 0)
        top = sum(positive[i] for i in largest(positive, count_above(h, percentile)))
        a = (sum(positive) / top) ** 2 if top > 0 else 1.0
        return energy([a * (w @ h + b) for w, b in zip(train["weight"], train["bias"])])

    return np.array([one(h) for h in test["features"]])


def class_means(rows):
    return {c: rows["features"][rows["labels"] == c].mean(axis=0) for c in sorted(set(rows["labels"].tolist()))}


def ora(train, test, reduce="max"):
    w, centre = train["weight"], np.mean(list(class_means(train).values()), axis=0)

    def one(h, z):
        top, angles = int(np.argmax(z)), []
        for c in range(len(z)):
            if c == top:
                continue
            normal = (w[top] - w[c]) / np.linalg.norm(w[top] - w[c])
            foot = h - (z[top] - z[c]) / np.linalg.norm(w[top] - w[c]) * normal
            a, b = h - centre, foot - centre
            # twice the arc tangent of half the angle: exact for small angles too
            a, b = a * np.linalg.norm(b), b * np.linalg.norm(a)
            angles.append(2 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))
        return -(max(angles) if reduce == "max" else np.mean(angles)) / math.pi

    return np.array([one(h, z) for h, z in zip(test["features"], test["logits"])])


def core(train, test):
    weight = train["weight"]
    outside = np.eye(weight.shape[1]) - np.linalg.pinv(weight) @ weight
    residuals = {"features": np.array([outside @ h for h in train["features"]]), "labels": train["labels"]}
    usual = [unit(v) for v in class_means(residuals).values()]

    def terms(h, z):
        return np.array([-energy(z), max(unit(outside @ h) @ v for v in usual)])

    known = np.array([terms(h, z) for h, z in zip(train["features"], train["logits"])])
    return np.array(
        [
            -((terms(h, z) - known.mean(axis=0)) / known.std(axis=0)).sum()
            for h, z in zip(test["features"], test["logits"])
        ]
    )


def grood(train, test, prototype="mean"):
    means = class_means(train)
    if prototype == "mean":
        outlier = np.mean(list(means.values()), axis=0)
    else:
        second = [sorted(means, key=lambda c: (-z[c], c))[1] for z in train["logits"]]
        outlier = np.mean([(h + means[c]) / 2 for h, c in zip(train["features"], second)], axis=0)

    def gradient(h):
        distances = [np.linalg.norm(h - p) for p in [outlier, *means.values()]]
        nearest = min(distances)
        shares = [math.exp(nearest - d) for d in distances]
        return shares[0] / sum(shares) * unit(h - outlier)

    right = [int(np.argmax(z)) == y for z, y in zip(train["logits"], train["labels"])]
    bank = [gradient(h) for h, ok in zip(train["features"], right) if ok or not any(right)]
    return np.array([min(((gradient(h) - g) ** 2).sum() for g in bank) for h in test["features"]])


def cfood(train, test, quantile=0.01, bank_fraction=0.1, seed=0):
    count = len(train["features"])
    chosen = shuffled_rows(count, seed)[: round(bank_fraction * count)]
    bank = [unit(train["features"][i]) for i in chosen]

    def squared(a, b):
        return round(float(((a - b) ** 2).sum()), 9)

    between = [[squared(a, b) for j, b in enumerate(bank) if j != i] for i, a in enumerate(bank)]

    def one(h):
        away = [squared(unit(h), a) for a in bank]
        ranks = [1 + sum(d < mine for d in row) for mine, row in zip(away, between)]
        return sorted(ranks)[max(1, math.ceil(round(quantile * len(bank), 9))) - 1] / len(bank)

    return np.array([one(h) for h in test["features"]])


def radial(rows, beta):
    lengths = [np.linalg.norm(h) for h in rows["features"]]
    return rows | {"features": np.array([h / r**beta if r > 0 else h for h, r in zip(rows["features"], lengths)])}


def mahalanobis(train, test, beta=1.0):
    return mds(radial(train, beta), radial(test, beta))


def maha_free(train, test, beta=1.0):
    known, new = radial(train, beta)["features"], radial(test, beta)["features"]
    mean = known.mean(axis=0)
    precision = pinv(sum(np.outer(v - mean, v - mean) for v in known) / len(known))
    return np.array([(v - mean) @ precision @ (v - mean) for v in new])


MEMBERS = {"ebo": ebo, "knn": knn, "msp": msp}


def average(train, test, members="ebo,knn", combine="rank"):
    held_out = {key.removeprefix("val_"): column for key, column in train.items() if key.startswith("val_")}
    total = []
    for name in members.split(","):
        member = MEMBERS[name.strip()]
        known, new = member(train, held_out), member(train, test)
        spread = known.std() or 1.0
        if combine == "sum_z":
            total.append((new - known.mean()) / spread)
            continue

        def place(t, known=known, spread=spread):
            close = 1e-5 * spread
            rank = (sum(v < t - close for v in known) + sum(v <= t + close for v in known)) / 2 / len(known)
            above, below = t - max(known), min(known) - t
            return rank + (above / spread if above > close else 0) - (below / spread if below > close else 0)

        total.append(np.array([place(t) for t in new]))
    return sum(total) if combine == "sum_z" else sum(total) / len(total)
