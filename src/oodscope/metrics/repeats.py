"""Interval of a mean over repeated runs, such as the seeds of one training recipe."""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.scores import check_scores


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
