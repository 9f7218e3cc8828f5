"""Detectors once more, from their papers' equations: float64 NumPy, one image at a time, no oodscope."""

import math

import numpy as np


def softmax(z):
    shifted = [math.exp(v - max(z)) for v in z]
    return [v / sum(shifted) for v in shifted]


def msp(train, test):
    # the sum over the other classes equals 1 - max p and does not round to 0
    return np.array([sum(p for i, p in enumerate(softmax(z)) if i != int(np.argmax(z))) for z in test["logits"]])


def mls(train, test):
    return np.array([-max(z) for z in test["logits"]])


def ebo(train, test, temperature=1.0):
    def energy(z):
        top = max(z) / temperature
        return -temperature * (top + math.log(sum(math.exp(v / temperature - top) for v in z)))

    return np.array([energy(z) for z in test["logits"]])


def unit(v):
    length = np.linalg.norm(v)
    return v / length if length > 0 else v


def knn(train, test, k=50):
    bank = [unit(h) for h in train["features"]]
    return np.array([sorted(np.linalg.norm(unit(h) - b) for b in bank)[k - 1] for h in test["features"]])


def mds(train, test):
    h, y = train["features"], train["labels"]
    classes = sorted(set(y.tolist()))
    mean = {c: h[y == c].mean(axis=0) for c in classes}
    covariance = sum(np.outer(v - mean[c], v - mean[c]) for v, c in zip(h, y)) / len(h)
    precision = np.linalg.pinv(covariance, hermitian=True, rcond=len(covariance) * np.finfo(float).eps)
    return np.array([min((v - mean[c]) @ precision @ (v - mean[c]) for c in classes) for v in test["features"]])


def vim(train, test, dim):
    origin = -np.linalg.pinv(train["weight"]) @ train["bias"]
    centred = train["features"] - origin
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    residual = vectors[:, np.argsort(-values)][:, dim:]
    lengths = [np.linalg.norm(v @ residual) for v in centred]
    alpha = sum(max(z) for z in train["logits"]) / sum(lengths)
    return np.array(
        [alpha * np.linalg.norm((h - origin) @ residual) + e for h, e in zip(test["features"], ebo(train, test))]
    )


def react(train, test, percentile=90):
    limit = np.percentile(train["val_features"], percentile)
    logits = [[w @ np.minimum(h, limit) + b for w, b in zip(train["weight"], train["bias"])] for h in test["features"]]
    return ebo(train, {"logits": logits})


def odin(train, test, temperature=1000.0):
    return msp(train, {"logits": np.asarray(test["perturbed"]) / temperature})
