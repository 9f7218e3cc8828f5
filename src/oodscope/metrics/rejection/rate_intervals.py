"""Intervals of error rates where resampling images is not enough: few images behind a threshold, few classes."""

from collections.abc import Sequence
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtrit

from oodscope.metrics.interval import Interval, check_level, wilson_interval
from oodscope.metrics.rejection.rejection import Decisions, Rejection
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.scores import FloatArray

FEW = 5.0
"""Expected images of the threshold sample beyond the threshold, below which a bootstrap covers the truth too seldom: it
never draws a score above the largest of the sample (DER99 with 100 images: 70 % where 95 % are promised)."""

LEAST_CLASSES = 5.0

Rate = Literal["der", "frr", "far"]


def order_statistics_interval(
    rejection: Rejection, sample: ThresholdSample, keep: float, rate: Rate, level: float = 0.95
) -> Interval:
    r"""A conservative interval of a rate at the threshold that keeps the share q of all ID images.

    With probability :math:`1 - \alpha/2` the true quantile lies between two order statistics of the sample,
    :math:`s_{(l)}` and :math:`s_{(u)}`, whose ranks are binomial quantiles (David & Nagaraja, *Order Statistics*, 7.1);
    above the largest score it is unbounded. The ends are those of Wilson's intervals, at :math:`1 - \alpha/2`, of the
    smallest and of the largest rate that any threshold between the two has.
    """
    check_level(level)
    half = (1.0 + level) / 2.0
    decisions = rejection.between(*sample.spread(keep, half))
    mistakes, trials = _counted(decisions, rate)
    if not trials:
        return Interval(float("nan"), float("nan"), level, "none")
    low, high = (wilson_interval(int(end), trials, half) for end in (mistakes.min(), mistakes.max()))
    return Interval(low.low, high.high, level, "order-statistics-wilson")


def _counted(decisions: Decisions, rate: Rate) -> tuple[FloatArray, int]:
    mistakes = {
        "der": decisions.rejected_correct + decisions.kept_wrong,
        "frr": decisions.rejected_correct,
        "far": decisions.kept_wrong,
    }[rate]
    trials = {
        "der": decisions.n,
        "frr": decisions.kept_correct + decisions.rejected_correct,
        "far": decisions.kept_wrong + decisions.rejected_wrong,
    }[rate]
    return mistakes, int(np.ravel(trials)[0])


class RateNoise(NamedTuple):
    """The variance of a rate and the degrees of freedom with which it is known."""

    variance: float
    df: float


def image_noise(mistaken: NDArray[np.bool_]) -> RateNoise:
    """Of a rate over images drawn independently."""
    rate, n = float(mistaken.mean()), mistaken.size
    return RateNoise(rate * (1.0 - rate) / n, max(1.0, n - 1.0))


def class_noise(mistaken: NDArray[np.bool_], classes: NDArray[np.int64]) -> RateNoise | None:
    r"""Of a rate over images of classes that were drawn: the linearised variance with classes as clusters.

    .. math:: \frac{C}{C - 1} \sum_c \Bigl(\sum_{i \in c} (m_i - \bar m)\Bigr)^2 / n^2

    ``None`` with fewer than five effective classes, :math:`(\sum_c n_c)^2 / \sum_c n_c^2`.
    """
    _, index = np.unique(classes, return_inverse=True)
    sizes = np.bincount(index)
    if sizes.sum() ** 2 / np.sum(sizes**2) < LEAST_CLASSES:
        return None
    residuals = np.bincount(index, weights=mistaken - mistaken.mean())
    count = sizes.size
    return RateNoise(float(count / (count - 1) * np.sum(residuals**2)) / mistaken.size**2, count - 1.0)


def mean_rate_interval(
    rates: Sequence[float], noises: Sequence[RateNoise], threshold_variance: float, level: float = 0.95
) -> Interval | None:
    """Student's interval, on the logit scale, of the mean of rates of independent sets at one threshold.

    Parameters
    ----------
    noises : of each rate at the threshold as it is; their degrees of freedom are joined as Satterthwaite does.
    threshold_variance : of the mean, from other samples that the threshold could have come from.
    """
    check_level(level)
    mean, k = float(np.mean(rates)), len(rates)
    parts = [noise.variance / k**2 for noise in noises]
    variance = sum(parts) + threshold_variance
    if not 0.0 < mean < 1.0 or variance <= 0.0:
        return None
    spread = sum(part**2 / noise.df for part, noise in zip(parts, noises))
    df = variance**2 / spread if spread > 0.0 else np.inf
    t = -float(stdtrit(min(df, 1e6), (1.0 - level) / 2.0))
    reach = t * sqrt(variance) / (mean * (1.0 - mean))
    centre = float(logit(mean))
    return Interval(float(expit(centre - reach)), float(expit(centre + reach)), level, "class-clusters-logit-t")
