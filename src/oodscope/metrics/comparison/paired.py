"""Two detectors on the same images: the difference, its interval, and whether noise alone explains it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.influence import half_a_failure
from oodscope.metrics.interval import check_level
from oodscope.metrics.ranking.clusters import sampling_noise
from oodscope.metrics.ranking.placements import Placements
from oodscope.metrics.resampling.bootstrap import Bootstrap, percentile_interval
from oodscope.metrics.scores import check_scores


@dataclass(frozen=True)
class PairedTest:
    """The difference of two detectors, first minus second.

    Parameters
    ----------
    first, second : the metric of each.
    difference : its sign says who has more, not who is better.
    low, high, level : its interval.
    p : chance of a difference at least so large if the two were alike (two-sided).
    error : standard error of the difference; NaN where the test has none.
    method : ``"delong-paired"`` or ``"bootstrap-paired-1000"``.
    statistic : z of DeLong; NaN where the test has none.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    level: float
    p: float
    error: float
    method: str
    statistic: float = nan

    @property
    def detectable(self) -> float:
        """See :func:`detectable_difference`, at the level of this test."""
        return detectable_difference(self.error, alpha=1.0 - self.level)


def paired_delong(first: Placements, second: Placements, level: float = 0.95) -> PairedTest:
    r"""DeLong's test (Biometrics 1988) of two (mean) AUROCs on the same images.

    :math:`z = (A - B) / \mathrm{se}`. The covariance of the two is in the differences of their placements: the
    standard error is that of a mean of :math:`V^A_i - V^B_i`, so an image that is hard for both cancels. Two
    detectors that rank alike have no noise at all, difference 0 and p = 1. A difference without noise (one
    separates perfectly, the other scores all alike) gets that of half a failure in m + 1 trials, m the smaller
    sample, like a perfectly separated set in :func:`mean_auroc_interval`.
    """
    check_level(level)
    between = first - second
    difference = between.mean
    error = sampling_noise(between).error
    if error <= 1e-12 * abs(difference) or (error == 0.0 and difference == 0.0):
        error = 0.0 if difference == 0.0 else half_a_failure(between)
    statistic = difference / error if error > 0.0 else 0.0
    reach = -float(ndtri((1.0 - level) / 2.0)) * error
    return PairedTest(
        first.mean,
        second.mean,
        difference,
        max(difference - reach, -1.0),
        min(difference + reach, 1.0),
        level,
        float(2.0 * ndtr(-abs(statistic))),
        error,
        "delong-paired",
        statistic,
    )


def paired_bootstrap(
    first: Bootstrap, second: Bootstrap, metric: str, ood_sets: Sequence[str], level: float = 0.95
) -> PairedTest:
    r"""The difference of two detectors in any metric, averaged over ``ood_sets``, replicate by replicate.

    Both bootstraps must come from the same draws: one call of :func:`bootstrap_each`, or the
    same seed and images. The interval is the percentile interval of the differences; p inverts it,
    :math:`p = 2 \min(\#\{d^* \le 0\} + 1, \#\{d^* \ge 0\} + 1) / (R + 1)`, at most 1, so with 1,000 replicates
    no p lies below 0.002.
    """
    mine, other = first.replicates(metric, ood_sets), second.replicates(metric, ood_sets)
    if mine.size != other.size:
        raise DataError(f"a paired bootstrap needs the same draws; {mine.size} replicates meet {other.size}")
    replicates = mine - other
    interval = percentile_interval(replicates, level)
    tail = min(int(np.sum(replicates <= 0.0)), int(np.sum(replicates >= 0.0))) + 1
    mine_point, other_point = first.point(metric, ood_sets), second.point(metric, ood_sets)
    return PairedTest(
        mine_point,
        other_point,
        mine_point - other_point,
        interval.low,
        interval.high,
        level,
        min(1.0, 2.0 * tail / (replicates.size + 1)),
        float(np.std(replicates)),
        f"bootstrap-paired-{replicates.size}",
    )


def detectable_difference(error: float, *, power: float = 0.8, alpha: float = 0.05, freedom: float = inf) -> float:
    r"""The smallest true difference that a two-sided test at ``alpha`` finds with probability ``power``.

    :math:`(z_{1-\alpha/2} + z_{\text{power}})\, \mathrm{se}`, 2.80 standard errors as it stands; with few degrees of
    freedom Student's quantiles stand in. Below it, these images are too few: "no significant difference" then says
    little.
    """
    if isnan(error) or error < 0.0:
        raise DataError(f"a standard error is a number from 0 up; it is {error}")
    for name, share in (("power", power), ("alpha", alpha)):
        if not 0.0 < share < 1.0:
            raise DataError(f"{name} lies between 0 and 1; it is {share}")
    return float(stdtrit(freedom, 1.0 - alpha / 2.0) + stdtrit(freedom, power)) * error


def corrected_t(first: ArrayLike, second: ArrayLike, *, test_to_train: float, level: float = 0.95) -> PairedTest:
    r"""The corrected resampled t-test of Nadeau & Bengio (Machine Learning 2003).

    Folds share training images, so their differences are not independent and the plain t-test finds too much.
    The variance of the mean of J differences is taken as
    :math:`(1/J + n_\text{test}/n_\text{train})\, s^2` instead of :math:`s^2/J`, with J - 1 degrees of freedom;
    for repeated cross-validation J counts all folds of all repetitions (Bouckaert & Frank 2004). It belongs to
    folds of one data set, never to different sets.

    Parameters
    ----------
    first, second : the metric of each detector, fold by fold.
    test_to_train : images (or classes) tested over those trained on; 1/4 for 5 folds.
    """
    check_level(level)
    mine, other = check_scores(first, "the values of the folds"), check_scores(second, "the values of the folds")
    if mine.size < 2 or mine.size != other.size:
        raise DataError(f"a test over folds needs at least 2, the same for both; it has {mine.size} and {other.size}")
    values = mine - other
    if not test_to_train > 0.0:
        raise DataError(f"test_to_train is a ratio of sizes, such as 0.25 for 5 folds; it is {test_to_train}")
    mean, freedom = float(values.mean()), values.size - 1
    error = sqrt((1.0 / values.size + test_to_train) * float(np.var(values, ddof=1)))
    statistic = mean / error if error > 0.0 else (0.0 if mean == 0.0 else float(np.copysign(np.inf, mean)))
    reach = -float(stdtrit(freedom, (1.0 - level) / 2.0)) * error
    p = float(2.0 * stdtr(freedom, -abs(statistic)))
    ends = mean - reach, mean + reach
    return PairedTest(
        float(mine.mean()), float(other.mean()), mean, *ends, level, p, error, "t-nadeau-bengio", statistic
    )
