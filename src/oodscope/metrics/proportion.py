"""Interval of a rate: accuracy, coverage, an error rate."""

from math import sqrt

from scipy.special import ndtri

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level


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
