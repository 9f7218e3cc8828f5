r"""Every pair of detectors over the cells of a study, a cell being one experiment (an ID set, an OOD set, a training).

The cells of a study share networks and images, so they are not independent and p-values over them come out too small;
Holm's correction does not mend that. Read them as a description of these cells.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import mannwhitneyu, rankdata, shapiro, ttest_1samp

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.comparison.many_sets import signed_ranks
from oodscope.metrics.comparison.multiplicity import benjamini_hochberg, holm
from oodscope.metrics.scores import FloatArray

CELL_TESTS = ("wilcoxon", "mannwhitney")
"""Paired signed ranks; and the rank-sum test of two independent samples, which the text of DCV-ROOD names."""

_NORMAL = 0.05
"""Shapiro-Wilk p above which differences pass for normal."""


class CellTests(NamedTuple):
    """Do two detectors differ over cells? One entry for each pair of detectors.

    Parameters
    ----------
    p : two-sided.
    direction : 1 if the first has more by the statistic of the test, -1 if the second, 0 if neither.
    parametric : whether Student's t was taken.
    """

    p: FloatArray
    direction: NDArray[np.int64]
    parametric: NDArray[np.bool_]


def cell_tests(
    first: ArrayLike, second: ArrayLike, *, test: str = "wilcoxon", auto_parametric: bool = False
) -> CellTests:
    """Test pairs of detectors over the same cells.

    Parameters
    ----------
    first, second : ``[pair, cell]``: the metric of each, cell by cell; at least 8 cells.
    test : ``"wilcoxon"``: signed ranks of the paired differences. ``"mannwhitney"`` forgets which values belong to
        one cell, so the spread between cells drowns the difference of the detectors. DCV-ROOD names it, but its
        printed p-values are those of the first.
    auto_parametric : where the paired differences pass for normal (Shapiro-Wilk, p > 0.05), take Student's paired t.
    """
    if test not in CELL_TESTS:
        raise UnknownNameError("test over cells", test, CELL_TESTS)
    mine, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    differences = mine - other
    p = signed_ranks(differences)  # also refuses what cannot be tested
    balance = np.sum(np.sign(differences) * rankdata(np.abs(differences), axis=1), axis=1)
    if test == "mannwhitney":
        found = mannwhitneyu(mine, other, axis=1)
        p, balance = np.array(found.pvalue), found.statistic - mine.shape[1] ** 2 / 2.0
    parametric = np.zeros(len(differences), dtype=np.bool_)
    if auto_parametric:
        varied = np.ptp(differences, axis=1) > 0.0
        parametric[varied] = [shapiro(row).pvalue > _NORMAL for row in differences[varied]]
        p[parametric] = ttest_1samp(differences[parametric], 0.0, axis=1).pvalue
        balance[parametric] = differences[parametric].mean(axis=1)
    return CellTests(p, np.sign(balance).astype(np.int64), parametric)


@dataclass(frozen=True)
class PairTests:
    """The tests of all pairs, as matrices over detectors.

    Parameters
    ----------
    p : symmetric, 1 on the diagonal.
    direction : 1 where the detector of the row has more, -1 where that of the column.
    """

    p: FloatArray
    direction: NDArray[np.int64]

    def holm(self) -> FloatArray:
        """The p-values after Holm's correction over the pairs."""
        return _square(holm(self.p[_upper(len(self.p))]), len(self.p))

    def benjamini_hochberg(self) -> FloatArray:
        """The p-values after Benjamini and Hochberg's correction over the pairs."""
        return _square(benjamini_hochberg(self.p[_upper(len(self.p))]), len(self.p))


def pair_tests(table: ArrayLike, *, test: str = "wilcoxon", auto_parametric: bool = False) -> PairTests:
    """Test every pair of detectors; see :func:`cell_tests`.

    Parameters
    ----------
    table : ``[detector, cell]``, at least 2 detectors and 8 cells.
    """
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2 or len(values) < 2:
        raise DataError(f"pairs need a table of 2 detectors or more, one row each; its shape is {values.shape}")
    count = len(values)
    first, second = _upper(count)
    found = cell_tests(values[first], values[second], test=test, auto_parametric=auto_parametric)
    direction = np.zeros((count, count), dtype=np.int64)
    direction[first, second], direction[second, first] = found.direction, -found.direction
    return PairTests(_square(found.p, count), direction)


def _upper(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(count, 1)


def _square(pairs: FloatArray, count: int) -> FloatArray:
    matrix = np.ones((count, count))
    matrix[_upper(count)] = pairs
    return np.minimum(matrix, matrix.T)
