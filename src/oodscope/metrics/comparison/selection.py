r"""The value of a detector that was chosen because it looked best.

The largest of many estimates is too large: the best of 46 equal detectors looks 0.65 to 2.1 points too good. Chosen on
one half of the units (OOD classes, ID images) and measured on the other, both ways, the choice has no part in the
measurement. Halves are drawn many times, and the mean over them is the value.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from oodscope.metrics.comparison.influence import Estimates, Part
from oodscope.metrics.comparison.simultaneous import may_be_best
from oodscope.metrics.interval import check_level
from oodscope.metrics.scores import FloatArray

SPLITS = 50


@dataclass(frozen=True)
class Selected:
    """The detector that leads, what it is worth, and which others may be best.

    Parameters
    ----------
    leader : the detector with the best value.
    apparent : that value, which flatters it.
    value, low, high, level : its cross-fitted value with an interval.
    candidates : which detectors may be best (:func:`may_be_best`); the leader is one of them.
    """

    leader: int
    apparent: float
    value: float
    low: float
    high: float
    level: float
    candidates: NDArray[np.bool_]


def select(estimates: Estimates, *, higher: bool = True, level: float = 0.95, seed: int = 0) -> Selected:
    """The leader of a table with its cross-fitted value, and the set that may be best."""
    leader = int(np.argmax(estimates.values if higher else -estimates.values))
    value, low, high = leader_value(estimates, higher=higher, level=level, seed=seed)
    candidates = may_be_best(estimates, higher=higher, alpha=1.0 - level, seed=seed)
    candidates[leader] = True
    return Selected(leader, float(estimates.values[leader]), value, low, high, level, candidates)


def leader_value(
    estimates: Estimates, *, higher: bool = True, level: float = 0.95, seed: int = 0
) -> tuple[float, float, float]:
    """The cross-fitted value of the leader with Student's interval.

    The noise is that of the detectors that the halves chose, mean of their variances: the leader's alone would be
    selected along with it. The degrees of freedom are the fewest among them.
    """
    check_level(level)
    value, chosen = cross_fit(estimates, higher=higher, seed=seed)
    _, error, freedom = estimates.contrasts(np.eye(len(estimates))[:, chosen])
    reach = -float(stdtrit(freedom.min(), (1.0 - level) / 2.0) * np.sqrt(np.mean(error**2)))
    return value, value - reach, value + reach


def cross_fit(
    estimates: Estimates, *, higher: bool = True, seed: int = 0, splits: int = SPLITS
) -> tuple[float, NDArray[np.intp]]:
    """The mean value, on the half that did not choose, of the detector that the other half finds best; all choices."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(9,)))
    halves = np.sum([_half(part, rng, splits) for part in estimates.parts], axis=0)
    sign = 1.0 if higher else -1.0
    found, choices = [], []
    for choosing, measuring in zip(halves, halves[::-1]):
        chosen = np.argmax(sign * (estimates.values + choosing), axis=1)
        choices.append(chosen)
        found.append(estimates.values[chosen] + measuring[np.arange(splits), chosen])
    return float(np.mean(found)), np.concatenate(choices)


def _half(part: Part, rng: np.random.Generator, splits: int) -> FloatArray:
    """How far the mean of either half of the units lies from that of all: ``[half, split, detector]``."""
    units = part.units
    rows = part.rows * np.sqrt(units * (units - 1.0))  # units less their mean
    first = np.zeros((splits, units))
    for split in range(splits):
        first[split, rng.permutation(units)[: units // 2]] = 1.0
    sums = first @ rows
    total = rows.sum(axis=0)
    return np.stack([sums / (units // 2), (total - sums) / (units - units // 2)])
