"""Wilson's interval for a share of independent images, such as an accuracy or an error rate at a fixed threshold."""

from scipy.stats import binomtest

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level


def wilson_interval(successes: int, trials: int, level: float = 0.95) -> Interval:
    """The interval of ``successes / trials`` (Wilson 1927); it stays inside [0, 1] and has width at 0 and at 1."""
    check_level(level)
    if not 0 <= successes <= trials or trials == 0:
        raise DataError(f"a share needs 0 <= successes <= trials and a trial; they are {successes} and {trials}")
    ends = binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Interval(float(ends.low), float(ends.high), level, "wilson")
