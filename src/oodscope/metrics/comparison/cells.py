r"""Every pair of detectors over the cells of a study, a cell being one experiment (an ID set, an OOD set, a training).

The cells of a study share networks and images, so they are not independent and p-values over them come out too small;
Holm's correction does not mend that. Read them as a description of these cells.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import mannwhitneyu, rankdata, shapiro, ttest_rel

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.comparison.many_sets import signed_rank
from oodscope.metrics.comparison.multiplicity import benjamini_hochberg, holm
from oodscope.metrics.scores import FloatArray

CELL_TESTS = ("wilcoxon", "mannwhitney")
"""Paired signed ranks; and the rank-sum test of two independent samples, which the text of DCV-ROOD names."""

_NORMAL = 0.05
"""Shapiro-Wilk p above which differences pass for normal."""


class CellTest(NamedTuple):
    """Do two detectors differ over cells?

    Parameters
    ----------
    p : two-sided.
    direction : 1 if the first has more by the statistic of the test, -1 if the second, 0 if neither.
    test : which one was made: ``"wilcoxon"``, ``"mannwhitney"`` or ``"t"``.
    """

    p: float
    direction: int
    test: str


def cell_test(
    first: ArrayLike, second: ArrayLike, *, test: str = "wilcoxon", auto_parametric: bool = False
) -> CellTest:
    """Test two detectors over the same cells.

    Parameters
    ----------
    first, second : the metric of each, cell by cell; at least 8 cells.
    test : ``"wilcoxon"``: signed ranks of the paired differences. ``"mannwhitney"`` forgets which values belong to
        one cell, so the spread between cells drowns the difference of the detectors. DCV-ROOD names it, but its
        printed p-values are those of the first.
    auto_parametric : where the paired differences pass for normal (Shapiro-Wilk, p > 0.05), take Student's paired t.
    """
    if test not in CELL_TESTS:
        raise UnknownNameError("test over cells", test, CELL_TESTS)
    mine, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    p = signed_rank(mine, other)  # also refuses what cannot be tested
    differences = mine - other
    if auto_parametric and np.ptp(differences) > 0.0 and shapiro(differences).pvalue > _NORMAL:
        return CellTest(float(ttest_rel(mine, other).pvalue), int(np.sign(differences.mean())), "t")
    if test == "mannwhitney":
        found = mannwhitneyu(mine, other)
        return CellTest(float(found.pvalue), int(np.sign(found.statistic - mine.size**2 / 2.0)), test)
    ranked = float(np.sum(np.sign(differences) * rankdata(np.abs(differences))))
    return CellTest(p, int(np.sign(ranked)), test)


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
    """Test every pair of detectors; see :func:`cell_test`.

    Parameters
    ----------
    table : ``[detector, cell]``, at least 2 detectors and 8 cells.
    """
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2 or len(values) < 2:
        raise DataError(f"pairs need a table of 2 detectors or more, one row each; its shape is {values.shape}")
    p, direction = np.ones((len(values), len(values))), np.zeros((len(values), len(values)), dtype=np.int64)
    for a, b in combinations(range(len(values)), 2):
        found = cell_test(values[a], values[b], test=test, auto_parametric=auto_parametric)
        p[a, b] = p[b, a] = found.p
        direction[a, b], direction[b, a] = found.direction, -found.direction
    return PairTests(p, direction)


def _upper(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(count, 1)


def _square(pairs: FloatArray, count: int) -> FloatArray:
    matrix = np.ones((count, count))
    matrix[_upper(count)] = pairs
    return np.minimum(matrix, matrix.T)
