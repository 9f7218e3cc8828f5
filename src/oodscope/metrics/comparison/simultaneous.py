r"""Many detectors at once: who may be best, and which ranks are possible, with one promise for the whole table.

Two questions, two procedures. *Who may be best*: Hsu's comparisons with the best (Annals of Statistics 1984), each
detector against the D - 1 others, one-sided. *Full ranks*: all pairs, two-sided, step-down max-T (Westfall & Young
1993). Both take the distribution of the largest statistic from multipliers: a sign for every unit (OOD class, image),
the same for all detectors, so that their dependence is kept:

.. math:: T^*_c = \frac{\sum_p \sqrt{(G_p-1)/G_p}\; S_{pc}}{\sqrt{\sum_p (V_{pc} - S_{pc}^2 / G_p)}}, \qquad
          S_{pc} = \sum_g \epsilon_g r_{gc}, \quad V_{pc} = \sum_g r_{gc}^2 .

The denominator is what the variance would be found to be after the signs have changed: without it the largest of many
t-statistics of few classes is taken for far too small. Resamples of images are no units, so signs do not show how well
their variance is known; its share of the denominator is multiplied by :math:`\chi^2_\nu / \nu`, drawn for each
detector by itself (:func:`~oodscope.metrics.comparison.influence.noise_freedom`). Below 10 units there are too few
patterns of signs (:math:`2^9 = 512` for 10) and Holm's or Bonferroni's correction of Student's t stands in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.influence import Estimates, Part, pairs_of, placed_images
from oodscope.metrics.comparison.multiplicity import holm
from oodscope.metrics.interval import check_level
from oodscope.metrics.ranking.placements import Placements
from oodscope.metrics.scores import FloatArray

REPLICATES = 1999
FEWEST_SIGNS = 10
"""Units below which signs give too coarse a distribution."""

_BLOCK = 2**23  # signs at a time: 32 MB of float32
_FEW = 500
"""Units from which on the variance is as good as unchanged by the signs."""

Family = Literal["max-T", "holm"]


@dataclass(frozen=True)
class PairTable:
    """Pairs of detectors; every one, first < second, unless some were asked for.

    Parameters
    ----------
    difference, error, freedom : first minus second, its standard error, and how well that is known.
    low, high : the interval of each difference by itself.
    p, p_adjusted : two-sided; of the pair by itself, and adjusted for all pairs.
    family : how it was adjusted.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    difference: FloatArray
    error: FloatArray
    freedom: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    p_adjusted: FloatArray
    family: Family


class Signs:
    """The sums of every part of some estimates under random signs, drawn when first needed.

    Both procedures take the same signs of the same seed, so whoever runs both draws them once.
    """

    def __init__(self, estimates: Estimates, *, seed: int = 0, replicates: int = REPLICATES) -> None:
        self._estimates, self._seed, self._replicates = estimates, seed, replicates

    @cached_property
    def _drawn(self) -> tuple[list[FloatArray], Mapping[str, Any]]:
        rng = _draws(self._seed)
        sums = [_signed_sums(part, rng, self._replicates) for part in self._estimates.parts]
        return sums, rng.bit_generator.state

    @property
    def sums(self) -> list[FloatArray]:
        """For each part the sums of its rows after random signs, ``[replicate, detector]``."""
        return self._drawn[0]

    def generator(self) -> np.random.Generator:
        """What goes on drawing after the signs; the same numbers for everyone who asks."""
        rng = _draws(self._seed)
        rng.bit_generator.state = self._drawn[1]
        return rng


def compare_pairs(
    estimates: Estimates,
    *,
    pairs: Sequence[tuple[int, int]] | None = None,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = REPLICATES,
    signs: Signs | None = None,
) -> PairTable:
    """Student's test of some pairs (every one by default), p adjusted for all of them by step-down max-T.

    With fewer than 10 units p is adjusted by Holm. ``signs`` are those of these estimates, where somebody drew them.
    """
    check_level(level)
    first, second, weights = pairs_of(len(estimates), pairs)
    difference, error, freedom = estimates.contrasts(weights)
    statistic = np.abs(_ratio(difference, error))
    p = 2.0 * stdtr(freedom, -statistic)
    reach = -stdtrit(freedom, (1.0 - level) / 2.0) * error
    family: Family = "max-T" if estimates.fewest >= FEWEST_SIGNS else "holm"
    if first.size < 2:
        adjusted = p
    elif family == "max-T":
        signs = signs or Signs(estimates, seed=seed, replicates=replicates)
        drawn = _studentised(estimates, signs.sums, weights, signs.generator())
        adjusted = np.maximum(p, _step_down(statistic, np.abs(drawn)))
    else:
        adjusted = np.maximum(p, holm(2.0 * stdtr(_cautious(estimates, freedom), -statistic)))
    low, high = difference - reach, difference + reach
    return PairTable(first, second, difference, error, freedom, low, high, p, adjusted, family)


def rank_intervals(
    estimates: Estimates, *, higher: bool = True, alpha: float = 0.05, table: PairTable | None = None
) -> list[tuple[int, int]]:
    """For each detector the ranks that it may have; all of them hold at once with probability 1 - alpha.

    A detector's best rank is one more than the detectors that are significantly better, its worst leaves behind those
    that are significantly worse (Mohamad, Goeman & van Zwet 2019).
    """
    count = len(estimates)
    if not count:
        raise DataError("ranks need at least one detector")
    found = table or compare_pairs(estimates, level=1.0 - alpha)
    better, worse = [0] * count, [0] * count
    for a, b, difference, p in zip(found.first, found.second, found.difference, found.p_adjusted):
        if p < alpha:
            winner, loser = (a, b) if (difference > 0.0) == higher else (b, a)
            better[loser] += 1
            worse[winner] += 1
    return [(1 + above, count - below) for above, below in zip(better, worse)]


def rank_ranges(detectors: Sequence[Placements], *, alpha: float = 0.05) -> list[tuple[int, int]]:
    """For each detector the ranks that its (mean) AUROC may have on other images of these classes.

    Ranks of bootstrap replicates, the common alternative, come out too narrow among near-equals: a replicate has no
    ties, however equal the detectors are.
    """
    if not detectors:
        raise DataError("ranks need at least one detector")
    return rank_intervals(placed_images(detectors), alpha=alpha)


def may_be_best(
    estimates: Estimates,
    *,
    higher: bool = True,
    alpha: float = 0.05,
    seed: int = 0,
    replicates: int = REPLICATES,
    signs: Signs | None = None,
) -> NDArray[np.bool_]:
    """Which detectors may be the best one; the truly best is among them with probability 1 - alpha (Hsu 1984).

    A detector drops out if some other one is better by more than the one-sided noise of its D - 1 comparisons.
    ``signs`` are those of these estimates, where somebody drew them.
    """
    count = len(estimates)
    if count == 1:
        return np.ones(1, dtype=np.bool_)
    sign = 1.0 if higher else -1.0
    signs = signs or Signs(estimates, seed=seed, replicates=replicates)
    rng = None if estimates.fewest < FEWEST_SIGNS else signs.generator()
    found = np.ones(count, dtype=np.bool_)
    for own in range(count):
        weights = np.delete(sign * np.eye(count), own, axis=1)
        weights[own] = -sign
        lead, error, freedom = estimates.contrasts(weights)
        statistic = _ratio(lead, error)
        if rng is None:
            limit = -stdtrit(_cautious(estimates, freedom), alpha / (count - 1))
        else:
            largest = _studentised(estimates, signs.sums, weights, rng).max(axis=1)
            # never sharper than Student's t of a single comparison, which signs approach without a guarantee
            limit = np.maximum(np.quantile(largest, 1.0 - alpha, method="higher"), -stdtrit(freedom, alpha))
        found[own] = bool(np.all(statistic <= limit))
    return found


def _ratio(difference: FloatArray, error: FloatArray) -> FloatArray:
    return np.divide(difference, error, out=np.zeros_like(difference), where=error > 0.0)


def _cautious(estimates: Estimates, freedom: FloatArray) -> FloatArray:
    """Degrees of freedom of the smallest part.

    Far out in the tail, where many comparisons lead, Satterthwaite's are too many: among many pairs there is one whose
    few classes lie together by chance, which makes its noise look small and well known at once.
    """
    return np.minimum(freedom, estimates.fewest - 1.0)


def _step_down(statistic: FloatArray, drawn: FloatArray) -> FloatArray:
    """Adjusted p: each statistic against the largest drawn one among those that are not larger than it."""
    order = np.argsort(-statistic, kind="stable")
    remaining = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    p = (1.0 + np.sum(remaining >= statistic[order] - 1e-12, axis=0)) / (1.0 + len(drawn))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p)
    return np.asarray(adjusted)


def _draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,)))


def _signed_sums(part: Part, rng: np.random.Generator, replicates: int) -> FloatArray:
    rows: NDArray[Any] = part.rows.astype(np.float32) if part.units > _FEW else part.rows
    block = max(1, _BLOCK // part.units)
    width = -(-part.units // 8)
    sums = []
    for start in range(0, replicates, block):
        count = min(block, replicates - start)
        bits = np.frombuffer(rng.bytes(count * width), dtype=np.uint8).reshape(count, width)
        signs: NDArray[Any] = np.unpackbits(bits, axis=1, count=part.units).astype(rows.dtype)
        # signs of -1 and 1 by sums of 0 and 1: the rows add up to the same total under every pattern
        sums.append(2.0 * (signs @ rows).astype(np.float64) - part.rows.sum(axis=0))
    return np.concatenate(sums)


def _studentised(
    estimates: Estimates, sums: list[FloatArray], weights: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """``T*`` of every replicate and contrast."""
    _, error, _ = estimates.contrasts(weights)
    total, variance = np.zeros((len(sums[0]), weights.shape[1])), np.broadcast_to(error**2, (1, error.size))
    for part, drawn in zip(estimates.parts, sums):
        moved = drawn @ weights
        if part.resampled:
            total += moved
            # each detector's noise is off by itself, so that of the pairs of one detector is off together; two of half
            # the degrees of freedom make a difference that has all of them
            half, own = part.freedom / 2.0, np.diagonal(part.covariance)
            scale = rng.chisquare(half, size=drawn.shape) / half
            share = (scale * own) @ weights**2 / np.maximum(own @ weights**2, np.finfo(np.float64).tiny)
            variance = variance + part.variances(weights) * (share - 1.0)
        elif np.isinf(part.freedom) or part.units > _FEW:
            total += moved
        else:
            total += sqrt((part.units - 1.0) / part.units) * moved
            variance = variance - moved**2 / part.units
    floor = np.maximum(variance, 1e-12 * np.maximum(error**2, np.finfo(np.float64).tiny))
    return np.where(error > 0.0, total / np.sqrt(floor), 0.0)
