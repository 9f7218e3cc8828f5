"""Radii of a radar plot: several benchmarks side by side, each stretched over its own range."""

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray

INNER, OUTER = 0.1, 1.1
"""The worst and the best row of every axis, as in figure 8 of "Raising the Bar": no row is drawn at the centre."""


def radar_radii(table: ArrayLike) -> FloatArray:
    """Each column of ``[row, axis]`` mapped to [0.1, 1.1], its smallest value to 0.1 and its largest to 1.1.

    What is left is order and relative distance: whether an axis is hard (all its values low) is not to be seen, and a
    difference of nothing fills the plot like any other. Beside it belongs :func:`kendall`. The paper
    does not say whether it stretched each axis or all together; only the former shows orders, which it speaks of. A
    column that does not vary lies half-way.

    Parameters
    ----------
    table : a metric, a row per detector (on a network), a column per benchmark.
    """
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape or not np.isfinite(values).all():
        raise DataError(f"a radar plot needs a finite value for every row and axis; the shape is {values.shape}")
    low, high = values.min(axis=0), values.max(axis=0)
    varies = high > low
    share = np.divide(values - low, high - low, out=np.full(values.shape, 0.5), where=varies)
    return np.asarray(INNER + (OUTER - INNER) * share)
