"""Detectors of vision-language heads, once more from their papers' equations."""

import math

import numpy as np

from tests.detectors.twins.arithmetic import unit
from tests.detectors.twins.first import msp

CASES = {
    "gl_mcm": [{}, {"temperature": 0.1, "local_weight": 0.5}],
    "mcm": [{}, {"temperature": 0.1}],
    "neglabel": [{}, {"temperature": 0.02, "groups": 3}],
    "negrefine": [{}, {"temperature": 0.02, "pair_weight": 0.5}],
}


def cosines(test):
    concepts = [unit(w) for w in test["weight"]]
    return [[float(unit(h) @ w) for w in concepts] for h in test["features"]]


def mcm(train, test, temperature=1.0):
    return msp(train, {"logits": [[c / temperature for c in row] for row in cosines(test)]})


def gl_mcm(train, test, temperature=1.0, local_weight=1.0):
    return mcm(train, test, temperature) - 1 - local_weight * np.array(test["local"])[:, 0]


def negrefine(train, test, temperature=0.01, groups=100, nearest=5, pair_weight=2.0):
    return neglabel(train, test, temperature, groups) - 1 - pair_weight * np.array(test["pair_matches"])[:, 0]


def neglabel(train, test, temperature=0.01, groups=100):
    """The sums over negative labels are those of the world, whatever the temperature is."""

    def one(row, negative):
        positive = math.fsum(math.exp(c / temperature) for c in row)
        return np.mean([math.exp(a) / (positive + math.exp(a)) for a in negative])

    return np.array([one(row, negative) for row, negative in zip(cosines(test), test["negative_sums"])])
