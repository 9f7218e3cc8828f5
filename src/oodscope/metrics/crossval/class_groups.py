r"""An interval over OOD classes from the folds of cross-validation, whose test parts are groups of classes.

A repetition deals all C classes into K groups and tests each group once. Another repetition deals *the same* classes
anew, so R repetitions are not R·K independent groups, however many there are: they remove the luck of the dealing and
leave the luck of which C classes exist. So the folds of one repetition are resampled, K out of K, and repetitions are
not averaged within a replicate:

.. math:: m^* = \bar v + \sqrt{\tfrac{K}{K-1}}\, (\bar v^*_r - \bar v_r), \qquad r \text{ drawn among the repetitions},

:math:`\bar v^*_r` the mean of K folds of repetition r drawn with replacement. Its variance is
:math:`\frac1R \sum_r S_r^2 / K`, the unbiased one of a mean over K groups: the root undoes what resampling K of K
loses. Every fold also brings its own ID test part, so the interval covers other ID test images too; it does not cover
another draw of the training seed beyond what differs between folds.
"""

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.scores import FloatArray


def class_group_interval(folds: ArrayLike, *, level: float = 0.95, seed: int = 0, count: int = 2000) -> Interval:
    """The interval of the mean over all folds, for other OOD classes; its ends stay within 0 and 1.

    Parameters
    ----------
    folds : ``[repetition, fold]``, a metric between 0 and 1.
    count : replicates.
    """
    check_level(level)
    values = np.asarray(folds, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or not len(values):
        raise DataError(f"an interval over classes needs repetitions of 2 folds or more; the shape is {values.shape}")
    low, high = class_group_intervals(values[:, :, None], level=level, seed=seed, count=count)[:, 0]
    return Interval(float(low), float(high), level, f"bootstrap-class-groups-{count}")


def class_group_intervals(folds: FloatArray, *, level: float = 0.95, seed: int = 0, count: int = 2000) -> FloatArray:
    """``[end, series]`` for many series at once, ``[repetition, fold, series]``, all with the same draws."""
    repetitions, groups = folds.shape[:2]
    rng = np.random.default_rng(seed)
    chosen = rng.integers(repetitions, size=count)
    drawn = rng.multinomial(groups, np.full(groups, 1.0 / groups), size=count) / groups
    centred = folds - folds.mean(axis=1, keepdims=True)
    deviations = np.empty((count, folds.shape[2]))
    for repetition in range(repetitions):
        own = chosen == repetition
        deviations[own] = drawn[own] @ centred[repetition]
    deviations *= np.sqrt(groups / (groups - 1.0))
    tail = (1.0 - level) / 2.0
    ends = folds.mean(axis=(0, 1)) + np.quantile(deviations, [tail, 1.0 - tail], axis=0)
    return np.asarray(np.clip(ends, 0.0, 1.0))
