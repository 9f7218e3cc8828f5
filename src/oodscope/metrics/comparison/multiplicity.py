"""Many comparisons at once: p-values that stay honest together."""

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
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
