"""Rectifiers and scores of the predicted class, once more: float64 NumPy, one image at a time, no oodscope."""

import math

import numpy as np

from tests.detectors.twins.arithmetic import energy, softmax

CASES = {
    "ash": [{}, {"percentile": 65}, {"percentile": 0}],
    "ash_s": [{}, {"percentile": 65}],
    "ash_p": [{}, {"percentile": 65}],
    "scale": [{}, {"percentile": 65}, {"percentile": 99}],
    "vra": [{}, {"high": 99, "low": 1}, {"gamma": 0.4}, {"high": 90, "low": 10, "clip_low": True}],
    "dice": [{}, {"percentile": 10}, {"percentile": 50}],
    "she": [{}, {"metric": "euclidean"}, {"metric": "cosine"}],
    "fdbd": [{}, {"distance_as_normalizer": False}],
    "nci": [{}, {"alpha": 0.1}],
    "adascale_a": [{}, {"low": 60, "high": 99}],
    "adascale_l": [{}, {"low": 60, "high": 99}],
    "optfs": [{}, {"intervals": 7}],
    "cadref": [{}],
    "nac": [{}, {"alpha": 3000.0, "bins": 7, "enough": 10}],
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


def vra(train, test, high=95, low=60, gamma=0.0, clip_low=False):
    lower, upper = np.percentile(train["val_features"], [low, high])

    def change(h):
        if clip_low:
            return np.array([min(max(v, lower), upper) for v in h])
        return np.array([0.0 if v < lower else upper if v > upper else v + gamma for v in h])

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


def adascale_ratios(train, test, low, high):
    def instability(h, moved):
        correction = sum(max(moved[i], 0.0) for i in largest(h, max(1, int(0.05 * len(h)))))
        return correction + 10 * sum(abs(h[i] - moved[i]) for i in largest(h, max(1, int(0.01 * len(h)))))

    known = [instability(h, m) for h, m in zip(train["val_features"], train["val_perturbed_features"])]
    for h, moved in zip(test["features"], test["perturbed_features"]):
        share = sum(q <= instability(h, moved) for q in known) / len(known)
        positive = np.maximum(h, 0)
        k = count_above(h, low + (1 - share) * (high - low))
        top = sum(positive[i] for i in largest(h, k))
        yield sum(positive) / top if top > 0 else 1.0


def adascale_a(train, test, low=75, high=85):
    ratios = adascale_ratios(train, test, low, high)
    return np.array(
        [exact_energy(h * math.exp(r), train["weight"], train["bias"]) for h, r in zip(test["features"], ratios)]
    )


def adascale_l(train, test, low=75, high=85):
    ratios = adascale_ratios(train, test, low, high)
    return np.array([energy((train["weight"] @ h + train["bias"]) * r**2) for h, r in zip(test["features"], ratios)])


def optfs(train, test, intervals=100):
    low, high = np.percentile(train["features"], [0.1, 99.9])
    width = (high - low) / intervals

    def place(v):
        k = math.floor((v - low) / width)
        return k if 0 <= k < intervals else None

    gain = np.zeros(intervals)
    for h, z in zip(train["features"], train["logits"]):
        for v, w in zip(h, train["weight"][int(np.argmax(z))]):
            if place(v) is not None:
                gain[place(v)] += w * v / len(train["features"])
    theta = 1000 * gain / np.linalg.norm(gain)

    def score(h, z):
        w = train["weight"][int(np.argmax(z))]
        return -sum(w_i * v * theta[place(v)] for w_i, v in zip(w, h) if place(v) is not None)

    return np.array([score(h, z) for h, z in zip(test["features"], test["logits"])])


def cadref(train, test):
    predicted = np.argmax(train["logits"], axis=1)
    typical = np.mean([-energy(z) for z in train["logits"]])

    def score(h, z):
        c = int(np.argmax(z))
        own = train["features"][predicted == c] if (predicted == c).any() else train["features"]
        up = down = 0.0
        for error, w in zip(h - own.mean(axis=0), train["weight"][c]):
            if error * w >= 0:
                up += abs(error)
            else:
                down += abs(error)
        return (up / -energy(z) + down / typical) / max(np.abs(h).sum(), 1e-12)

    return np.array([score(h, z) for h, z in zip(test["features"], test["logits"])])


def nac(train, test, alpha=100.0, bins=50, enough=50):
    def states(h, z):
        excess = np.array(softmax(z)) - 1 / len(z)
        for i, v in enumerate(h):
            x = alpha * v * sum(e * w for e, w in zip(excess, train["weight"][:, i]))
            s = 1 / (1 + math.exp(-x)) if x > -700 else 0.0
            yield i, min(int(s * bins), bins - 1)

    seen = {}
    for h, z in zip(train["features"], train["logits"]):
        for state in states(h, z):
            seen[state] = seen.get(state, 0) + 1
    return np.array(
        [
            -np.mean([min(seen.get(state, 0) / enough, 1) for state in states(h, z)])
            for h, z in zip(test["features"], test["logits"])
        ]
    )
