"""Detectors once more, from their papers' equations: float64 NumPy, one image at a time, no oodscope."""

import numpy as np

from tests.detectors.twins.arithmetic import energy, softmax, unit

CASES = {
    "msp": [{}],
    "mls": [{}],
    "ebo": [{}, {"temperature": 0.5}],
    "knn": [{}, {"k": 1}, {"k": 100}, {"k": "openood"}],
    "mds": [{}],
    "vim": [{"dim": 6}, {"dim": 11}],
    "react": [{}, {"percentile": 70}],
    "odin": [{}, {"temperature": 10.0}],
}


def msp(train, test):
    # the sum over the other classes equals 1 - max p and does not round to 0
    return np.array([sum(p for i, p in enumerate(softmax(z)) if i != int(np.argmax(z))) for z in test["logits"]])


def mls(train, test):
    return np.array([-max(z) for z in test["logits"]])


def ebo(train, test, temperature=1.0):
    return np.array([energy(z, temperature) for z in test["logits"]])


def neighbours(k, openood, labels):
    """A fifth of the smallest class, at most what OpenOOD takes."""
    smallest = min(list(labels).count(c) for c in set(labels.tolist()))
    return {"auto": min(openood, max(1, smallest // 5)), "openood": openood}.get(k, k)


def knn(train, test, k="auto"):
    k = neighbours(k, 50, train["labels"])
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
