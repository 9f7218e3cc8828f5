r"""The mean AUROC over several negative and several positive samples, every pair of sets weighing the same.

Pooled negatives let the largest set decide. The mean over all pairs of sets does not look at sizes, and equals the
AUROC of pooled images that are weighted so that every set weighs the same:

.. math:: \bar A = \frac{1}{KL} \sum_{k=1}^{K} \sum_{l=1}^{L} A_{kl}
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.scores import FloatArray, check_scores


def crossed_auroc(
    negatives: Sequence[ArrayLike], positives: Sequence[ArrayLike], level: float = 0.95
) -> tuple[float, Interval]:
    r"""The mean AUROC of every pair of sets, with its joint interval.

    One image errs against all sets of the other side together, so its placements are averaged over them before
    their variance is taken, as :func:`mean_auroc_interval` does for one ID sample, of which this is
    the extension to several:

    .. math:: \widehat{\mathrm{Var}}(\bar A) =
        K^{-2} \sum_k S^2_{\bar W_k} / n_k + L^{-2} \sum_l S^2_{\bar V_l} / m_l

    Perfect separation, of all sets or of some, is treated as there.
    """
    check_level(level)
    if not negatives or not positives:
        raise DataError("a mean AUROC needs at least one set on each side")
    below = [np.sort(check_scores(scores, "negative scores")) for scores in negatives]
    above = [np.sort(check_scores(scores, "positive scores")) for scores in positives]
    # the share of each other set that an image stands on the right side of, averaged over those sets
    won = [np.mean([_beaten(scores, other) for other in below], axis=0) for scores in above]
    kept = [np.mean([1.0 - _beaten(scores, other) for other in above], axis=0) for scores in below]
    mean = float(np.mean([placements.mean() for placements in won]))
    smallest = min(map(len, [*below, *above]))
    tail = (1.0 - level) / 2.0
    if mean in (0.0, 1.0):
        bound = tail ** (1.0 / smallest)
        low, high = (bound, 1.0) if mean == 1.0 else (0.0, 1.0 - bound)
        return mean, Interval(low, high, level, "exact-separation")
    variance = _variance_of_mean(kept, min(map(len, above))) + _variance_of_mean(won, min(map(len, below)))
    reach = -float(ndtri(tail)) * sqrt(variance) / (mean * (1.0 - mean))
    centre = float(logit(mean))
    return mean, Interval(float(expit(centre - reach)), float(expit(centre + reach)), level, "delong-logit")


def _beaten(scores: FloatArray, others: FloatArray) -> FloatArray:
    """The share of ``others`` (sorted) below each score, a tie counting half."""
    sides = others.searchsorted(scores, "left") + others.searchsorted(scores, "right")
    return sides / (2.0 * others.size)


def _variance_of_mean(placements: Sequence[FloatArray], others: int) -> float:
    """The variance of a mean over sets; ``others`` is the size of the smallest set on the other side."""
    total = 0.0
    for each in placements:
        mean = float(each.mean())
        if mean in (0.0, 1.0):
            m = min(each.size, others)
            total += (m + 0.5) * 0.5 / (m + 1) ** 2 / m
        else:
            total += (mean * (1.0 - mean) if each.size == 1 else float(each.var(ddof=1))) / each.size
    return total / len(placements) ** 2
