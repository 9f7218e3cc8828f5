"""A confidence interval that says how it was made."""

from dataclasses import dataclass
from math import nan, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.scores import check_scores

Intervals = Literal["full", "fast", "none"]
"""How intervals are made. ``full``: analytic where the theory is exact for what is estimated (DeLong for AUROC, Wilson
for accuracy), else from 1,000 bootstrap replicates; ``fast``: the same with 200; ``none``: values alone."""

REPLICATES: dict[Intervals, int] = {"full": 1000, "fast": 200, "none": 0}
"""Bootstrap replicates of each choice. The ends of a 95 % interval have a standard error of about 2 % of its width with
1,000, and of about 5 % with 200."""


@dataclass(frozen=True)
class Interval:
    """Where the value would lie for other images of the same sources, at confidence ``level``.

    Parameters
    ----------
    low, high : the ends; NaN where the method is ``"none"``.
    level : confidence, such as 0.95.
    method : ``"delong-logit"``, ``"exact-separation"``, ``"obuchowski-logit"``, ``"wilson"``,
        ``"t-3-runs"``, ``"bootstrap-bca-1000"``, ``"bootstrap-inverted-1000"``, ``"bootstrap-rows-1000"``,
        ``"bootstrap-clusters-1000"``, ``"bootstrap-exact"`` or ``"none"``.
    """

    low: float
    high: float
    level: float
    method: str


NO_INTERVAL = Interval(nan, nan, nan, "none")


def check_intervals(intervals: str) -> None:
    """Refuse a choice of intervals that does not exist."""
    if intervals not in REPLICATES:
        raise UnknownNameError("choice of intervals", str(intervals), REPLICATES, f"Known: {', '.join(REPLICATES)}")


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1), such as 95 meant as a percentage."""
    if not 0.0 < level < 1.0:
        raise DataError(f"a confidence level lies between 0 and 1, such as 0.95; it is {level}")


def wilson_interval(successes: int, trials: int, level: float = 0.95) -> Interval:
    r"""Wilson's interval (JASA 1927) of a rate :math:`\hat p = k / n`.

    The p that a score test does not reject, :math:`|\hat p - p| \le z \sqrt{p(1-p)/n}`:

    .. math:: \frac{\hat p + z^2/2n \pm z \sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n}

    It stays inside [0, 1] and is not a point at 0 of n or n of n, where the plain
    :math:`\hat p \pm z\,\mathrm{se}` is.
    """
    check_level(level)
    if not 0 <= successes <= trials or trials < 1:
        raise DataError(f"a rate needs at least one trial and no more successes than trials: {successes} of {trials}")
    z = -float(ndtri((1.0 - level) / 2.0))
    rate, weight = successes / trials, z * z / trials
    centre = (rate + weight / 2.0) / (1.0 + weight)
    reach = z * sqrt(rate * (1.0 - rate) / trials + weight / (4.0 * trials)) / (1.0 + weight)
    # at 0 of n and n of n the exact end is 0 or 1, and rounding must not take the rate out of its interval
    low = 0.0 if successes == 0 else centre - reach
    high = 1.0 if successes == trials else centre + reach
    return Interval(low, high, level, "wilson")


def t_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    r"""Student's interval of the mean of n runs, :math:`\bar x \pm t_{n-1}\, s / \sqrt n`.

    It says where the mean over many more runs would lie. With few runs it is wide, and rightly so: at 3 runs
    t is 4.30. The runs differ in whatever was repeated, and each is measured on the same images, so this
    interval does not cover the noise of the images.
    """
    check_level(level)
    runs = check_scores(values, "the values of the runs")
    if runs.size < 2:
        raise DataError("the spread over runs needs at least 2 runs; there is 1")
    mean = float(np.mean(runs))
    t = -float(stdtrit(runs.size - 1, (1.0 - level) / 2.0))
    reach = t * float(np.std(runs, ddof=1)) / sqrt(runs.size)
    return Interval(mean - reach, mean + reach, level, f"t-{runs.size}-runs")
