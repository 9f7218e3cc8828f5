"""How a mean settles while repetitions are added to it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray, IntArray


@dataclass(frozen=True)
class RunningMean:
    r"""The mean of the first n repetitions, for every n; the first axis is n - 1.

    Parameters
    ----------
    mean : :math:`\bar x_n`.
    error : its standard error :math:`s_n / \sqrt n`; NaN for the first repetition alone.
    """

    mean: FloatArray
    error: FloatArray

    def settled_after(self, tolerance: float) -> IntArray:
        """The number of repetitions after which the mean stays within ``tolerance`` of the last one, series by series.

        The last mean is itself an estimate and contains the earlier ones, so this says when more repetitions ceased
        to matter, not how near the truth is; that is what ``error`` says.
        """
        outside = np.abs(self.mean - self.mean[-1]) > tolerance
        last = outside.shape[0] - np.argmax(outside[::-1], axis=0)
        return np.where(outside.any(axis=0), last + 1, 1).astype(np.int64)


def running_mean(values: ArrayLike) -> RunningMean:
    """The running mean along the first axis, with its standard error.

    Parameters
    ----------
    values : one row per repetition; other axes (detectors, cells) are series of their own.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim == 0 or len(series) == 0:
        raise DataError("a running mean needs at least one repetition")
    n = np.arange(1, len(series) + 1).reshape(-1, *[1] * (series.ndim - 1))
    # around the last mean, so that squares of nearly equal numbers do not cancel
    centred = series - series.mean(axis=0)
    mean = np.cumsum(centred, axis=0) / n
    squares = np.maximum(np.cumsum(centred**2, axis=0) - n * mean**2, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(squares / (n - 1) / n)
    return RunningMean(mean + series.mean(axis=0), error)
