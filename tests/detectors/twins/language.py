"""Detectors of vision-language heads, once more from their papers' equations."""

import math

import numpy as np

from tests.detectors.twins.arithmetic import unit
from tests.detectors.twins.first import msp

CASES = {
    "mcm": [{}, {"temperature": 0.1}],
    "neglabel": [{}, {"temperature": 0.02, "groups": 3}],
}


def cosines(test):
    concepts = [unit(w) for w in test["weight"]]
    return [[float(unit(h) @ w) for w in concepts] for h in test["features"]]


def mcm(train, test, temperature=1.0):
    return msp(train, {"logits": [[c / temperature for c in row] for row in cosines(test)]})


def neglabel(train, test, temperature=0.01, groups=100):
    """The sums over negative labels are those of the world, whatever the temperature is."""

    def one(row, negative):
        positive = math.fsum(math.exp(c / temperature) for c in row)
        return np.mean([math.exp(a) / (positive + math.exp(a)) for a in negative])

    return np.array([one(row, negative) for row, negative in zip(cosines(test), test["negative_sums"])])
