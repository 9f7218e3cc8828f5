r"""Calibration of every class's probability, not of the predicted class's alone.

.. math:: \frac1K \sum_{k=1}^{K} \sum_b \frac{n_{bk}}{n} \bigl| \overline{y}_{bk} - \overline{p}_{bk} \bigr|

(Kull et al., NeurIPS 2019): all n images are put into bins by their probability of class k, and in each bin the mean
probability is compared with the share of images that are of class k. A network may be right about its confidence on the
whole and give one class too much, another too little; only this shows it.
"""

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.calibration.calibration import BINS, bin_of, check_bins, inverted_interval
from oodscope.metrics.interval import Interval
from oodscope.metrics.scores import FloatArray, IntArray

_GROUPS = 500
_ROUNDING = 1e-3


def classwise_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = BINS) -> float:
    """Mean over the classes of the calibration error of their probabilities, in bins of equal width.

    Its size falls with the number of classes, because most probabilities are near 0 and rightly so: compare networks
    of one set of classes only.

    Parameters
    ----------
    probabilities : ``[N, K]``, the softmax.
    labels : the class of each image, 0 to K - 1.
    """
    values, classes = _check(probabilities, labels, bins)
    return float(np.abs(_gaps(values, classes, bins)).sum())


def classwise_interval(
    probabilities: ArrayLike,
    labels: ArrayLike,
    bins: int = BINS,
    level: float = 0.95,
    *,
    seed: int = 0,
    replicates: int = 1000,
) -> Interval:
    """Interval of :func:`classwise_calibration_error` for other images.

    An image has a place in the bins of all classes at once, so images are resampled, not bins. More than 500 images
    are dealt at random into 500 groups of equal size (up to one) which are resampled as wholes: the noise is then known
    to 3 %, and a thousand classes cost no more than one product of matrices.

    Parameters
    ----------
    probabilities, labels, bins : as for :func:`classwise_calibration_error`.
    """
    values, classes = _check(probabilities, labels, bins)
    rng = np.random.default_rng(seed)
    count = min(_GROUPS, len(values))
    groups = rng.permutation(np.arange(len(values)) % count)
    parts = _grouped_gaps(values, classes, bins, groups, count)
    drawn = rng.multinomial(count, np.full(count, 1.0 / count), size=replicates).astype(np.float64)
    return inverted_interval(_gaps(values, classes, bins), drawn @ parts, level)


def _gaps(values: FloatArray, classes: IntArray, bins: int) -> FloatArray:
    everybody = np.zeros(len(values), dtype=np.int64)
    return np.asarray(_grouped_gaps(values, classes, bins, everybody, 1)[0])


def _grouped_gaps(values: FloatArray, classes: IntArray, bins: int, groups: IntArray, count: int) -> FloatArray:
    """``[group, class and bin]``: what each group contributes to the gap of each bin of each class."""
    n, k = values.shape
    edges = np.arange(bins + 1) / bins
    parts = np.empty((count, k, bins))
    for each in range(k):
        column = values[:, each]
        cell = groups * bins + bin_of(column, edges)
        parts[:, each] = np.bincount(cell, (classes == each) - column, count * bins).reshape(count, bins)
    return np.asarray(parts.reshape(count, k * bins) / (n * k))


def _check(probabilities: ArrayLike, labels: ArrayLike, bins: int) -> tuple[FloatArray, IntArray]:
    check_bins(bins)
    values, classes = np.asarray(probabilities, dtype=np.float64), np.asarray(labels)
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"probabilities are [images, classes]; their shape is {values.shape}")
    # written so that NaN fails too
    if not ((values >= 0.0).all() and (np.abs(values.sum(axis=1) - 1.0) <= _ROUNDING).all()):
        raise DataError("the probabilities of each image must be 0 or more and sum to 1; take the softmax of logits")
    if classes.shape != (len(values),) or classes.dtype.kind not in "iu":
        raise DataError(f"{len(values)} images need as many class numbers; labels are {classes.dtype} {classes.shape}")
    if classes.min() < 0 or classes.max() >= values.shape[1]:
        reach = f"{classes.min()} to {classes.max()}"
        raise DataError(f"labels must lie among the {values.shape[1]} classes of the probabilities; they are {reach}")
    return values, classes.astype(np.int64)
