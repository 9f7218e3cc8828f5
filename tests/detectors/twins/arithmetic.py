"""What the papers' equations share, in plain float64."""

import math

import numpy as np


def softmax(z):
    shifted = [math.exp(v - max(z)) for v in z]
    return [v / sum(shifted) for v in shifted]


def energy(z, temperature=1.0):
    """The free energy, low where some class has support."""
    top = max(z) / temperature
    return -temperature * (top + math.log(sum(math.exp(v / temperature - top) for v in z)))


def unit(v):
    length = np.linalg.norm(v)
    return v / length if length > 0 else v
