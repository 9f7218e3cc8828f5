"""Detectors that read what probes found, once more from their papers' equations."""

import numpy as np

from tests.detectors.twins.arithmetic import energy, softmax
from tests.detectors.twins.first import mds, odin
from tests.detectors.twins.logits import ensemble_entropy, mutual_information

CASES = {
    "iodin": [{}, {"temperature": 10.0}],
    "rankfeat": [{}],
    "conf_branch": [{}],
    "reject": [{}],
    "rotpred": [{}],
    "godin": [{}, {"form": "softmax"}],
    "mos": [{}],
    "mcd": [{}],
    "csi": [{}],
    "guaranteed_msp": [{}, {"epsilon": 0.1}],
    "csi_unlabelled": [{}, {"rows": 10_000, "views": 2}],
    "mc_dropout": [{}, {"form": "entropy"}],
    "dempster_shafer": [{}],
    "gram": [{}],
    "mds_ensemble": [{}, {"epsilon": 0.0}, {"stages": "first"}],
    "mahalanobis_layers": [{}, {"parity": True}],
}


def iodin(train, test, **params):
    return odin(train, test, **params)


def conf_branch(train, test):
    return np.array([-row[0] for row in test["confidence"]])


def reject(train, test):
    def one(z, beyond):
        return beyond - max(z) - np.log(sum(np.exp(each - max(z)) for each in z))

    return np.array([one(z, row[0]) for z, row in zip(test["logits"], test["reject"])])


def rotpred(train, test):
    def one(z, losses):
        p = softmax(z)
        # of probabilities that underflow the logarithm is the difference of logits
        logs = [(z[c] - max(z)) - np.log(np.sum(np.exp(z - max(z)))) for c in range(len(p))]
        return sum(losses) / 4 + np.log(len(p)) + sum(logs) / len(p)

    return np.array([one(z, losses) for z, losses in zip(test["logits"], test["turns"])])


def godin(train, test, form="max"):
    if form == "softmax":
        return _doubt(test["numerators"])
    return np.array([-max(h) for h in test["numerators"]])


def csi_unlabelled(train, test, rows=10_000, views=4):
    known = train["turned"]
    length = [np.mean([np.linalg.norm(row[k][:-1]) for row in known]) for k in range(4)]
    turn = [np.mean([row[k][-1] for row in known]) for k in range(4)]

    def one(row):
        total = 0.0
        for k in range(4):
            nearest = max(row[k][:-1] @ a[k][:-1] / np.linalg.norm(a[k][:-1]) for a in known)
            total += nearest / length[k] + row[k][-1] / turn[k]
        return -total / 4

    return np.array([one(row) for row in test["turned"]])


def guaranteed_msp(train, test, epsilon=0.01):
    return np.array([1 - row[0] for row in test["certified"]])


def mc_dropout(train, test, form="information"):
    return (ensemble_entropy if form == "entropy" else mutual_information)(train, test)


def dempster_shafer(train, test):
    return np.array([np.log(len(z)) + energy(z) for z in test["logits"]])


def csi(train, test):
    return _doubt(test["joint"])


def _doubt(rows):
    """The probability of all classes but the likeliest."""
    return np.array([sum(sorted(softmax(z))[:-1]) for z in rows])


def mos(train, test):
    return np.array([min(np.exp(g) for g in row) for row in test["others"]])


def mcd(train, test):
    pairs = [(softmax(a), softmax(b)) for a, b in zip(test["logits"], test["second"])]
    return np.array([sum(abs(p - q) for p, q in zip(*pair)) for pair in pairs])


def rankfeat(train, test):
    return np.array([energy([(a + b) / 2 for a, b in zip(*pair)]) for pair in test["rank_reduced"]])


def gram(train, test):
    predicted = [int(np.argmax(z)) for z in train["logits"]]

    def bounds(c):
        own = [g for g, p in zip(train["gram"], predicted) if p == c] or list(train["gram"])
        return np.min(own, axis=0), np.max(own, axis=0)

    every = [bounds(c) for c in range(len(train["bias"]))]
    floor = 1e-6 * np.max([high for _, high in every], axis=(0, 2))

    def deviations(g, z):
        low, high = every[int(np.argmax(z))]
        total = np.zeros(len(g))
        for stage in range(len(g)):
            for v, lo, hi in zip(g[stage], low[stage], high[stage]):
                if v < lo:
                    total[stage] += (lo - v) / max(abs(lo), floor[stage])
                if v > hi:
                    total[stage] += (v - hi) / max(abs(hi), floor[stage])
        return total

    held_out = [deviations(g, z) for g, z in zip(train["val_gram"], train["val_logits"])]
    expected = np.mean(held_out, axis=0)
    expected[expected == 0] = 1
    return np.array([sum(deviations(g, z) / expected) / max(softmax(z)) for g, z in zip(test["gram"], test["logits"])])


def mahalanobis_layers(train, test, parity=False):
    """Without outliers to learn from: the sum of standardised distances, or its logistic function in 32 bits."""
    odds = mds_ensemble(train, test)
    return (1 / (1 + np.exp(-odds.astype(np.float32)))).astype(np.float64) if parity else odds


def mds_ensemble(train, test, stages="all", epsilon=0.0014):
    """The step needs a network; here the stepped maps are those of the world, whatever epsilon is."""

    def distances(rows, stage):
        layer = {"features": train["maps"][:, stage], "labels": train["labels"]}
        return mds(layer, {"features": rows[:, stage]}) / 2

    if stages == "first":
        return distances(test["maps"], 0)
    held_out = [distances(train["val_maps"], stage) for stage in range(3)]
    return sum(distances(test["maps"], stage) / held_out[stage].std() for stage in range(3))
