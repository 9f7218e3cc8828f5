r"""What a cross-validation says of other OOD classes: the OOD class is the unit, averaged over repetitions.

In a cross-validation every OOD class is tested once per repetition. With the AUROC of class c in repetition r,

.. math:: A_{cr} = \frac{1}{n_c}\sum_{i \in c} \left( F(s_i^-) + F(s_i) \right) / 2,

F the distribution of the scores of the ID images that the same fold tests, the C values :math:`\bar A_c` (means over
repetitions) are one observation per class. Their mean weighs classes alike, and its interval is Student's with C - 1
degrees of freedom. More repetitions make each value firmer; they make no new classes. Folds are not units: a mean over
a few groups of classes has a handful of values to estimate its spread from, and its bootstrap covers less than it
promises (86 to 91 % in place of 95).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray

FEWEST_CLASSES = 5
"""Fewer classes give no interval for others."""


def class_aurocs(
    id_scores: FloatArray, ood_scores: FloatArray, classes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], FloatArray, NDArray[np.int64]]:
    """The classes that occur, the AUROC of each against all ID scores, and how many images it has.

    Ties count half. Weighted by their sizes the values average to the AUROC of all outliers together.
    """
    ordered = np.sort(id_scores)
    below = np.searchsorted(ordered, ood_scores, "left") + np.searchsorted(ordered, ood_scores, "right")
    sizes = np.bincount(classes)
    present = np.flatnonzero(sizes)
    sums = np.bincount(classes, weights=below / (2.0 * len(ordered)))
    return present, sums[present] / sizes[present], sizes[present]


def class_interval(values: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Both ends of the interval of the mean over classes, series by series; between 0 and 1.

    Parameters
    ----------
    values : ``[class, ...]``: a value of each class, averaged over repetitions; other axes are series of their own.
    """
    count = len(values)
    if count < FEWEST_CLASSES:
        raise DataError(f"an interval for other OOD classes needs {FEWEST_CLASSES} classes; there are {count}")
    reach = student.ppf((1 + level) / 2, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    mean = values.mean(axis=0)
    return np.clip(mean - reach, 0.0, 1.0), np.clip(mean + reach, 0.0, 1.0)


def mean_class_interval(
    values: Mapping[str, Sequence[FloatArray]], level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Both ends of the interval of a mean over cells, each the mean over its OOD classes.

    Cells of one OOD set share its classes, which are one unit each: their values are averaged class by class first.
    Sets vary independently, with Satterthwaite's degrees of freedom.

    Parameters
    ----------
    values : by OOD set, of each cell ``[class, series]``.
    """
    cells = sum(map(len, values.values()))
    mean = np.stack([cell.mean(axis=0) for group in values.values() for cell in group]).mean(axis=0)
    variances, degrees = [], []
    for group in values.values():
        if min(map(len, group)) < FEWEST_CLASSES:
            raise DataError(f"an interval for other OOD classes needs {FEWEST_CLASSES} classes in every OOD set")
        own = np.sum([cell - cell.mean(axis=0) for cell in group], axis=0) / cells
        variances.append(own.var(axis=0, ddof=1) / len(own))
        degrees.append(len(own) - 1)
    parts = np.stack(variances)
    total = parts.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = total**2 / (parts**2 / np.array(degrees)[:, None]).sum(axis=0)
    reach = student.ppf((1 + level) / 2, np.where(total > 0.0, effective, 1.0)) * np.sqrt(total)
    return np.clip(mean - reach, 0.0, 1.0), np.clip(mean + reach, 0.0, 1.0)


def class_tests(differences: FloatArray) -> FloatArray:
    """Two-sided p of the mean difference over classes, ``[class, ...]``: Student's paired t with C - 1 degrees."""
    count = len(differences)
    if count < FEWEST_CLASSES:
        raise DataError(f"a test over OOD classes needs {FEWEST_CLASSES} classes; there are {count}")
    mean, spread = differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(spread > 0.0, mean / spread, np.where(mean == 0.0, 0.0, np.inf))
    return np.asarray(2.0 * student.sf(np.abs(statistic), count - 1))
