r"""Kernel inception distance, and a Fréchet distance without the bias of few images.

A Fréchet distance of n images in D dimensions is too large by about its slope in 1/n, and a bootstrap of it is centred
on a value that is larger still: at D/n near 1/2 its interval never covers the truth. The maximum mean discrepancy with
a cubic kernel has an unbiased estimate whatever n is, so blocks of images give it an honest interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from oodscope.base.errors import DataError
from oodscope.metrics.generated.frechet import Gaussian, frechet_distance
from oodscope.metrics.interval import Interval, check_level

Features = NDArray[np.float64]

BLOCK = 20
"""Images of a block at least: one block is one estimate, unbiased at any size, and blocks share no image. More blocks
are worth more than larger ones: the interval of two of them is Student's t with one degree of freedom, 13 times their
noise."""


@dataclass(frozen=True)
class Distance:
    """A distance between two samples of images, and its interval."""

    value: float
    interval: Interval


def kernel_distance(
    real: Features, other: Features, *, blocks: int = 10, level: float = 0.95, seed: int = 0
) -> Distance:
    r"""KID (Binkowski et al., ICLR 2018): squared maximum mean discrepancy with :math:`k(x,y) = (x^\top y/D + 1)^3`.

    Both samples are cut into ``blocks`` disjoint parts at random; each pair of parts gives an unbiased estimate, the
    value is their mean, and the interval is Student's t of their spread. Values below 0 occur where the samples are of
    one distribution.

    Parameters
    ----------
    real, other : features ``[N, D]`` of the same network; divide them by a common scale if they are large.
    blocks : fewer where they would have less than 20 images each, never fewer than 2.
    """
    check_level(level)
    n = min(len(real), len(other))
    if n < 4:
        raise DataError(f"a kernel distance needs 4 images or more of each kind, got {n}")
    count = max(2, min(blocks, n // BLOCK))
    rng, length = np.random.default_rng(seed), n // count
    ours, theirs = (
        each[rng.permutation(len(each))[: count * length]].reshape(count, length, -1) for each in (real, other)
    )
    values = np.array([_unbiased_mmd(a, b) for a, b in zip(ours, theirs)])
    half = float(stdtrit(count - 1, (1 + level) / 2)) * values.std(ddof=1) / np.sqrt(count)
    mean = float(values.mean())
    return Distance(mean, Interval(mean - half, mean + half, level, f"t-{count}-blocks"))


def _unbiased_mmd(x: Features, y: Features) -> float:
    dimension, n, m = x.shape[1], len(x), len(y)
    within_x, within_y, between = ((a @ b.T / dimension + 1) ** 3 for a, b in ((x, x), (y, y), (x, y)))
    own = (within_x.sum() - np.trace(within_x)) / (n * (n - 1)) + (within_y.sum() - np.trace(within_y)) / (m * (m - 1))
    return float(own - 2 * between.mean())


def frechet_at_infinity(real: Features, other: Features, *, parts: int = 5, seed: int = 0) -> float:
    r"""FD∞ (Chong and Forsyth, CVPR 2020): the line through distances of n images over 1/n, read at 1/n = 0.

    .. math:: \mathrm{FD}_n \approx \mathrm{FD}_\infty + b/n

    Parameters
    ----------
    parts : sample sizes, evenly from half of the images to all of them; both samples have the same size.
    """
    n = min(len(real), len(other))
    if n < 4 * real.shape[1] ** 0.5:
        raise DataError(f"{n} images are too few for a Fréchet distance in {real.shape[1]} dimensions")
    rng = np.random.default_rng(seed)
    sizes = np.linspace(n // 2, n, parts).astype(int)
    values = [
        frechet_distance(*(Gaussian.of(each[rng.permutation(len(each))[:size]]) for each in (real, other)))
        for size in sizes
    ]
    slope, intercept = np.polyfit(1 / sizes, values, 1)
    return float(max(0.0, intercept)) if slope > 0 else float(values[-1])
