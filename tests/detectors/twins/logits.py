"""Detectors that read logits and the head once more: float64 NumPy, one image at a time, no oodscope."""

import math

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import weibull_min

from tests.detectors.twins.arithmetic import softmax

CASES = {
    "gen": [{}, {"gamma": 0.01, "top": 3}, {"gamma": 2.0, "top": 1}],
    "entropy": [{}],
    "temp_scaling": [{}],
    "klm": [{}],
    "openmax": [{}, {"tail": 5, "alpha": 1}, {"tail": 40, "alpha": 10}],
    "gradnorm": [{}],
    "dropout": [{}, {"passes": 3, "drop": 0.2, "seed": 7}],
    "ensemble_entropy": [{}],
    "mutual_information": [{}],
    "sirc": [{}],
    "weiper": [
        {"repeats": 3},
        {"repeats": 1, "bins": 11, "smoothing": 4, "smoothing_logits": 3, "kl_weight": 2.0, "msp_weight": 0.5},
    ],
}


def log_softmax(z):
    top = max(z)
    total = top + math.log(math.fsum(math.exp(v - top) for v in z))
    return [v - total for v in z]


def doubt(z):
    """1 - max p as the sum of all other probabilities."""
    winner = int(np.argmax(z))
    return math.fsum(p for c, p in enumerate(softmax(z)) if c != winner)


def shannon(p):
    """The largest probability as what the others leave: near 1 its own logarithm rounds to 0."""
    winner = int(np.argmax(p))
    others = [v for c, v in enumerate(p) if c != winner]
    left = math.fsum(others)
    return -math.fsum(v * math.log(v) for v in others if v > 0) - (1 - left) * math.log1p(-left)


def gen(train, test, gamma=0.1, top=100):
    def one(z):
        terms = []
        for c, log_p in enumerate(log_softmax(z)):
            others = [math.exp(v) for i, v in enumerate(log_softmax(z)) if i != c]
            terms.append((log_p, math.exp(gamma * log_p) * math.fsum(others) ** gamma))
        return math.fsum(term for _, term in sorted(terms, reverse=True)[:top])

    return np.array([one(z) for z in test["logits"]])


def entropy(train, test):
    return np.array([shannon(softmax(z)) for z in test["logits"]])


def temp_scaling(train, test):
    def likelihood(log_temperature):
        temperature = math.exp(log_temperature)
        return -math.fsum(
            log_softmax(z / temperature)[y] for z, y in zip(train["val_logits"], train["val_labels"])
        ) / len(train["val_labels"])

    found = minimize_scalar(
        likelihood, bounds=(math.log(0.05), math.log(1000)), method="bounded", options={"xatol": 1e-10}
    )
    return np.array([doubt(z / math.exp(found.x)) for z in test["logits"]])


def klm(train, test):
    held_out = [softmax(z) for z in train["val_logits"]]
    classes = len(held_out[0])
    templates = []
    for c in range(classes):
        like = [p for p in held_out if int(np.argmax(p)) == c]
        template = np.mean(like, axis=0) if like else np.eye(classes)[c]
        templates.append([max(q, 2.0**-126) for q in template])

    def divergence(p, q):
        # both sum to one, so the last two terms only keep the sum from cancelling
        return math.fsum((a * math.log(a / b) if a > 0 else 0.0) - a + b for a, b in zip(p, q))

    return np.array([min(divergence(p, q) for q in templates) for p in map(softmax, test["logits"])])


def openmax(train, test, tail=20, alpha=3):
    classes = train["logits"].shape[1]
    means, start, weibull = {}, {}, {}
    for c in range(classes):
        mine = [z for z, y in zip(train["logits"], train["labels"]) if y == c and int(np.argmax(z)) == c]
        if not mine:
            continue
        means[c] = np.mean(mine, axis=0)
        extreme = np.array(sorted(np.linalg.norm(z - means[c]) for z in mine)[-tail:])
        start[c] = extreme[0] - 1
        weibull[c] = weibull_shape_and_scale(extreme - start[c])

    def one(z):
        changed, unknown = list(z), 0.0
        ranked = sorted(range(classes), key=lambda c: -z[c])[:alpha]
        for rank, c in enumerate(ranked):
            if c not in means:
                continue
            beyond = max(0.0, np.linalg.norm(z - means[c]) - start[c])
            outside = weibull_min.cdf(beyond, weibull[c][0], scale=weibull[c][1])
            lost = z[c] * outside * (len(ranked) - rank) / len(ranked)
            changed[c] -= lost
            unknown += lost
        return softmax([unknown, *changed])[0]

    return np.array([one(z) for z in test["logits"]])


def weibull_shape_and_scale(values):
    """By bisection of the likelihood equation for the shape."""
    logs = np.log(values)
    low, high = 1e-6, 1e6

    def surplus(shape):
        weights = np.exp(shape * (logs - logs.max()))
        return (weights @ logs) / weights.sum() - 1 / shape - logs.mean()

    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if surplus(middle) > 0 else (middle, high)
    return low, math.exp(logs.max()) * np.mean(np.exp(low * (logs - logs.max()))) ** (1 / low)


def gradnorm(train, test):
    """The gradient entry by entry, from the chain rule: d/dz_j of -sum_c log p_c, times dz_j/dW_jk = h_k."""

    def one(z, h):
        p = softmax(z)
        by_logit = [math.fsum(p[j] - (1.0 if c == j else 0.0) for c in range(len(z))) for j in range(len(z))]
        return -math.fsum(abs(g * v) for g in by_logit for v in h)

    return np.array([one(z, h) for z, h in zip(test["logits"], test["features"])])


def dropout(train, test, passes=5, drop=0.5, seed=0):
    chance = torch.rand(passes, train["weight"].shape[1], generator=torch.Generator().manual_seed(seed)).numpy()

    def one(h):
        votes = [
            softmax(train["weight"] @ np.where(chance[m] >= drop, h / (1 - drop), 0.0) + train["bias"])
            for m in range(passes)
        ]
        mean = np.mean(votes, axis=0)
        return math.fsum(p for c, p in enumerate(mean) if c != int(np.argmax(mean)))

    return np.array([one(h) for h in test["features"]])


def ensemble_entropy(train, test):
    return np.array([shannon(np.mean([softmax(z) for z in members], axis=0)) for members in test["members"]])


def mutual_information(train, test):
    inner = [np.mean([shannon(softmax(z)) for z in members]) for members in test["members"]]
    return ensemble_entropy(train, test) - inner


def sirc(train, test):
    lengths = [math.fsum(abs(v) for v in h) for h in train["val_features"]]
    centre, spread = np.mean(lengths), np.std(lengths)

    def one(z, h):
        exponent = -(math.fsum(abs(v) for v in h) - (centre - 3 * spread)) / spread
        return doubt(z) * (1 + math.exp(min(600.0, exponent)))

    return np.array([one(z, h) for z, h in zip(test["logits"], test["features"])])


def weiper(
    train,
    test,
    repeats,
    distance=1.8,
    bins=100,
    smoothing=4,
    smoothing_logits=15,
    kl_weight=2.5,
    msp_weight=0.1,
    seed=0,
):
    weight, bias = train["weight"], train["bias"]
    noise = torch.randn(repeats, *weight.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    heads = [
        np.array([w + distance * np.linalg.norm(w) * e / np.linalg.norm(e) for w, e in zip(weight, perturbation)])
        for perturbation in noise.numpy()
    ]

    def perturbed(h):
        return np.concatenate([head @ h + bias for head in heads])

    def histogram(values, least, greatest):
        low, width = least - 1e-9 * (greatest - least), (1 + 2e-9) * (greatest - least)
        counts = np.zeros(bins)
        for v in values:
            place = math.floor((v - low) / width * bins)
            if 0 <= place < bins:
                counts[place] += 1
        return counts / len(values)

    def smoothed(shares, width):
        left = (width - 1) // 2
        around = [[min(max(i - left + j, 0), bins - 1) for j in range(width)] for i in range(bins)]
        return np.array([np.mean([shares[k] for k in places]) for places in around])

    def divergence(p, q, floor):
        p, q = (p + floor) / (p + floor).sum(), (q + floor) / (q + floor).sum()
        return float(sum(a * math.log(a / b) + b * math.log(b / a) for a, b in zip(p, q)))

    known = [train["features"], np.array([perturbed(h) for h in train["features"]])]
    ranges = [(values.min(), values.max()) for values in known]
    means = [np.mean([histogram(row, *span) for row in values], axis=0) for values, span in zip(known, ranges)]

    def one(h):
        parts = [h, perturbed(h)]
        kl = [
            divergence(mean, smoothed(histogram(part, *span), width), floor)
            for part, span, mean, floor, width in zip(
                parts, ranges, means, (0.01, 0.025), (smoothing, smoothing_logits)
            )
        ]
        confidence = np.mean([1 - doubt(head @ h + bias) for head in heads])
        return kl[0] + kl_weight * kl[1] - msp_weight * confidence

    return np.array([one(h) for h in test["features"]])
