r"""What a cross-validation is worth: its error beside that of as many plain hold-outs.

K folds train K networks, and so do K hold-outs. With errors against one truth, which other hold-outs give,

.. math:: \rho = \sqrt{\frac{\mathrm{MSE}_\mathrm{cv} - v}{\mathrm{MSE}_K - v}},

v the mean squared error of that truth, which both contain. Below 1 the folds are worth their price.
"""

from typing import NamedTuple

import numpy as np

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray


class ErrorRatio(NamedTuple):
    """RMSE of a cross-validation over that of ``hold_outs`` plain hold-outs, with its 95 % interval over cells."""

    value: float
    low: float
    high: float
    hold_outs: int


def error_ratio(hold_outs: FloatArray, repetitions: FloatArray, folds: int, *, seed: int = 0) -> ErrorRatio:
    """The ratio of both errors.

    Parameters
    ----------
    hold_outs : ``[repetition, detector, cell]``; the first half makes groups of ``folds``, the second half the truth.
    repetitions : ``[repetition, detector, cell]``: the mean over the folds of each cross-validation.
    folds : how many networks a cross-validation trains.
    """
    half = len(hold_outs) // 2
    groups = half // folds
    if groups < 1 or len(hold_outs) - half < 2:
        raise DataError(f"an error ratio needs at least {2 * folds} hold-outs; there are {len(hold_outs)}")
    truth, rest = hold_outs[half:].mean(axis=0), hold_outs[half:]
    # per cell, so that cells can be drawn; detectors of a cell share their networks
    noise = (rest.var(axis=0, ddof=1) / len(rest)).mean(axis=0)
    grouped = hold_outs[: groups * folds].reshape(groups, folds, *truth.shape).mean(axis=1)
    crossed = ((repetitions - truth) ** 2).mean(axis=(0, 1)) - noise
    plain = ((grouped - truth) ** 2).mean(axis=(0, 1)) - noise
    drawn = np.random.default_rng(seed).integers(crossed.size, size=(2000, crossed.size))
    low, high = np.nanquantile(_ratio(crossed[drawn].mean(axis=1), plain[drawn].mean(axis=1)), [0.025, 0.975])
    return ErrorRatio(float(_ratio(crossed.mean(), plain.mean())), float(low), float(high), folds)


def _ratio(crossed: FloatArray, plain: FloatArray) -> FloatArray:
    """Their root; NaN where the hold-outs show no error beyond that of the truth."""
    return np.sqrt(np.maximum(crossed, 0.0) / np.where(plain > 0.0, plain, np.nan))
