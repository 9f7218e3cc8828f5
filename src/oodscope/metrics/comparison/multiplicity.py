"""Many comparisons at once: p-values that stay honest together."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.paired import PairedTest, paired_delong
from oodscope.metrics.ranking.placements import Placements
from oodscope.metrics.scores import FloatArray


def holm(p_values: ArrayLike) -> FloatArray:
    r"""Holm's adjusted p-values (1979): who rejects below alpha errs *anywhere* with probability at most alpha.

    The i-th smallest of m becomes :math:`\max_{j \le i} (m - j + 1)\, p_{(j)}`, at most 1. Holds for any
    dependence between the comparisons, and none is rejected less often than under Bonferroni.
    """
    p = _check(p_values)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    return _back(np.minimum(stepped, 1.0), order)


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    r"""Benjamini & Hochberg's adjusted p-values (1995): of those below alpha, a share alpha may be false.

    The i-th smallest of m becomes :math:`\min_{j \ge i} m\, p_{(j)} / j`. A milder promise than Holm's, for
    screening; it assumes comparisons that are independent or positively dependent.
    """
    p = _check(p_values)
    order = np.argsort(p, kind="stable")
    stepped = np.minimum.accumulate((p[order] * p.size / np.arange(1, p.size + 1))[::-1])[::-1]
    return _back(np.minimum(stepped, 1.0), order)


def _check(p_values: ArrayLike) -> FloatArray:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0.0) & (p <= 1.0)).all():
        raise DataError("p-values must be a vector of numbers from 0 to 1")
    return p


def _back(adjusted: FloatArray, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> FloatArray:
    result = np.empty_like(adjusted)
    result[order] = adjusted
    return result


def rank_ranges(detectors: Sequence[Placements], *, alpha: float = 0.05) -> list[tuple[int, int]]:
    """For each detector the ranks that its (mean) AUROC may have: ``(1, 4)`` says fourth at worst.

    Every pair is tested by paired DeLong and the p-values are adjusted by Holm. A detector's best rank is one
    more than the detectors that are significantly better, its worst leaves behind those that are significantly
    worse. Because Holm keeps the chance of *any* false verdict below alpha, all ranges of a table hold at once
    (Mohamad, Goeman & van Zwet 2019). Ranks of bootstrap replicates, the common alternative, come out too
    narrow among near-equals: a replicate has no ties, however equal the detectors are.
    """
    if not detectors:
        raise DataError("ranks need at least one detector")
    pairs = list(combinations(range(len(detectors)), 2))
    tests = [paired_delong(detectors[a], detectors[b]) for a, b in pairs]
    return ranges_from_tests(len(detectors), pairs, tests, alpha)


def ranges_from_tests(
    count: int, pairs: Sequence[tuple[int, int]], tests: Sequence[PairedTest], alpha: float
) -> list[tuple[int, int]]:
    """The same from tests that are made already; larger is better."""
    better, worse = [0] * count, [0] * count
    for (a, b), test, p in zip(pairs, tests, holm([test.p for test in tests]), strict=True):
        if p < alpha:
            winner, loser = (a, b) if test.difference > 0.0 else (b, a)
            better[loser] += 1
            worse[winner] += 1
    return [(1 + above, count - below) for above, below in zip(better, worse)]
