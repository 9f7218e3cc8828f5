"""Two detectors over the folds of a cross-validation, whose training sets overlap."""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.paired import PairedTest
from oodscope.metrics.interval import check_level
from oodscope.metrics.scores import check_scores


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
