"""Rectifiers and scores of the predicted class, once more: float64 NumPy, one image at a time, no oodscope."""

import math

import numpy as np

from .arithmetic import energy

CASES = {
    "ash": [{}, {"percentile": 65}, {"percentile": 0}],
    "ash_s": [{}, {"percentile": 65}],
    "ash_p": [{}, {"percentile": 65}],
    "scale": [{}, {"percentile": 65}, {"percentile": 99}],
    "vra": [{}, {"high": 99, "low": 1}, {"clip_low": True}],
    "dice": [{}, {"percentile": 10}, {"percentile": 50}],
    "she": [{}, {"metric": "euclidean"}, {"metric": "cosine"}],
    "fdbd": [{}, {"distance_as_normalizer": False}],
    "nci": [{}, {"alpha": 0.1}],
}


def largest(h, k):
    """Positions of the k largest, the earlier ones first among equals."""
    return sorted(range(len(h)), key=lambda i: (-h[i], i))[:k]


def count_above(h, percentile):
    return max(1, len(h) - int(np.round(len(h) * percentile / 100)))


def exact_energy(h, weight, bias):
    return energy([sum(w_i * h_i for w_i, h_i in zip(w, h)) + b for w, b in zip(weight, bias)])


def rectified(train, test, change):
    return np.array([exact_energy(change(h), train["weight"], train["bias"]) for h in test["features"]])


def ash(train, test, percentile=90):
    def change(h):
        k = count_above(h, percentile)
        new = np.zeros_like(h)
        for i in largest(h, k):
            new[i] = sum(h) / k
        return new

    return rectified(train, test, change)


def ash_p(train, test, percentile=90):
    def change(h):
        new = np.zeros_like(h)
        for i in largest(h, count_above(h, percentile)):
            new[i] = h[i]
        return new

    return rectified(train, test, change)


def ash_s(train, test, percentile=90):
    def change(h):
        new = np.zeros_like(h)
        for i in largest(h, count_above(h, percentile)):
            new[i] = h[i]
        return new * math.exp(sum(h) / sum(new)) if sum(new) > 0 else new

    return rectified(train, test, change)


def scale(train, test, percentile=85):
    def change(h):
        top = sum(h[i] for i in largest(h, count_above(h, percentile)))
        return h * math.exp(sum(h) / top) if top > 0 else h

    return rectified(train, test, change)


def vra(train, test, high=90, low=10, clip_low=False):
    lower, upper = np.percentile(train["val_features"], [low, high])

    def change(h):
        return np.array([(lower if clip_low else 0.0) if v < lower else min(v, upper) for v in h])

    return rectified(train, test, change)


def dice(train, test, percentile=90):
    contribution = train["weight"] * train["features"].mean(axis=0)
    kept = train["weight"] * (contribution > np.percentile(contribution, percentile))
    return np.array([exact_energy(h, kept, train["bias"]) for h in test["features"]])


def she(train, test, metric="inner_product"):
    h, y, predicted = train["features"], train["labels"], np.argmax(train["logits"], axis=1)
    everyone = h[predicted == y].mean(axis=0)

    def pattern(c):
        right, own = (predicted == c) & (y == c), y == c
        return h[right].mean(axis=0) if right.any() else h[own].mean(axis=0) if own.any() else everyone

    def score(v, z):
        p = pattern(int(np.argmax(z)))
        if metric == "euclidean":
            return np.linalg.norm(v - p)
        if metric == "cosine":
            lengths = np.linalg.norm(v) * np.linalg.norm(p)
            return -(v @ p) / lengths if lengths > 0 else 0.0
        return -(v @ p)

    return np.array([score(v, z) for v, z in zip(test["features"], test["logits"])])


def fdbd(train, test, distance_as_normalizer=True):
    w, mean = train["weight"], train["features"].mean(axis=0)

    def score(h, z):
        top = int(np.argmax(z))
        reach = sum(abs(z[c] - z[top]) / np.linalg.norm(w[c] - w[top]) for c in range(len(z)) if c != top)
        return -reach / max(np.linalg.norm(h - mean if distance_as_normalizer else h), 1e-12)

    return np.array([score(h, z) for h, z in zip(test["features"], test["logits"])])


def nci(train, test, alpha=1e-4):
    mean = train["features"].mean(axis=0)

    def score(h, z):
        w = train["weight"][int(np.argmax(z))]
        return -(w @ (h - mean)) / np.linalg.norm(h - mean) - alpha * np.abs(h).sum()

    return np.array([score(h, z) for h, z in zip(test["features"], test["logits"])])
