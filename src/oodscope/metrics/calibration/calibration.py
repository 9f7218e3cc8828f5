r"""Calibration of a classifier: does it get as many images right as its confidence says?

Images are put into bins by confidence; in bin b lie :math:`n_b` of n images. The expected calibration error is

.. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n}\, \bigl| \mathrm{acc}_b - \mathrm{conf}_b \bigr|

(Naeini et al., AAAI 2015; Guo et al., ICML 2017). Bins are open below and closed above, so a confidence of 1 lies in
the last one. ECE is too large on few images: noise makes a gap in every bin, and gaps do not cancel. Its interval
takes that into account (:mod:`oodscope.metrics.calibration.calibration`). The calibration of a detector's threshold is
another matter, :mod:`oodscope.metrics.rejection.conformal`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.rejection.rejection import Correct, check_correct
from oodscope.metrics.scores import FloatArray, check_scores

# Interval of a calibration error, which is a sum of absolute gaps, by inverting a test.
#
# The observed error :math:`\sum_b |g_b|` is too large, because noise opens gaps where there are none, and a bootstrap
# resample adds noise to noise: the middle 95 % of its errors miss the error of a perfectly calibrated network
# *always*.
# So resamples are used for the noise :math:`e = g^* - g` only, and the true gaps are sought along a path on which
# every
# gap of the sample shrinks, or grows, by the same number u of its standard errors,
#
# .. math:: \delta_b(u) = \mathrm{sign}(g_b) \max(|g_b| - u s_b, 0), \qquad T(u) = \sum_b |\delta_b(u) + e_b| .
#
# The ends are the errors :math:`\sum_b |\delta_b(u)|` at which what was observed is just the upper, or the lower, tail
# of
# :math:`T(u)`. Where perfect calibration explains the sample, the lower end is 0.


_FINE = 1e-4
"""Standard errors to which the place on the path is found."""

_CERTAIN = 1e9
"""A gap of so many standard errors has none but those of rounding, and stays where it is."""


def inverted_interval(gaps: FloatArray, replicates: FloatArray, level: float = 0.95) -> Interval:
    """The interval of ``sum(abs(gaps))``; it contains that value.

    Parameters
    ----------
    gaps : ``[B]``, of the sample.
    replicates : ``[R, B]``, of its bootstrap resamples.
    """
    check_level(level)
    path, tail = _Path(gaps, replicates - gaps), (1.0 - level) / 2.0
    point = float(np.abs(gaps).sum())
    # a fit that is better than chance is not evidence of an error below 0
    low, high = path.error_at(point, 1.0 - tail), path.error_at(max(point, path.tail(path.calibrated, 0.5)), tail)
    return Interval(min(low, point), max(high, point), level, f"bootstrap-inverted-{len(replicates)}")


class _Path:
    """The gaps that are tried, from perfect calibration to ever larger errors."""

    def __init__(self, gaps: FloatArray, noise: FloatArray) -> None:
        # seen from the side of the gap: what adds to it is positive
        self._sizes, self._noise = np.abs(gaps), noise * np.where(gaps < 0.0, -1.0, 1.0)
        spread = noise.std(axis=0)
        noisy = spread * _CERTAIN > self._sizes
        self._fixed = not noisy.any()
        self._spread = np.where(noisy, spread, 0.0)
        self.calibrated = 1.0 + float(np.max(self._sizes[noisy] / spread[noisy], initial=0.0))

    def tail(self, u: float, share: float) -> float:
        """The error that the share of samples stays below if the gaps have moved by u standard errors."""
        errors = self._noise + self._moved(u)
        return float(np.quantile(np.abs(errors, out=errors).sum(axis=1), share))

    def error_at(self, observed: float, share: float) -> float:
        """The true error under which the share of samples stays below what was observed."""
        if self._fixed or self.tail(self.calibrated, share) >= observed:
            return float(self._moved(self.calibrated).sum())
        near, far = self.calibrated, -1.0
        while self.tail(far, share) < observed:
            far *= 2.0
        while near - far > _FINE:
            middle = (near + far) / 2.0
            near, far = (middle, far) if self.tail(middle, share) < observed else (near, middle)
        return float(self._moved((near + far) / 2.0).sum())

    def _moved(self, u: float) -> FloatArray:
        return np.asarray(np.maximum(self._sizes - u * self._spread, 0.0))


BINS = 15
"""As Guo et al.; "Raising the Bar" does not say how many it uses."""

_ROUNDING = 1e-5
"""How far above 1 a confidence may lie: the mean of single-precision softmaxes does."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """What a reliability plot shows, and all that calibration errors and their intervals need.

    The sums have a row for images that the classifier gets wrong, one for those it gets right, and a column per bin.

    Parameters
    ----------
    edges : ``[B + 1]``: bin b holds confidences above ``edges[b]``, up to and including ``edges[b + 1]``.
    cells : ``[2, B]``, images.
    sums, squares : ``[2, B]``, sums of their confidences and of the squares of those.
    """

    edges: FloatArray
    cells: FloatArray
    sums: FloatArray
    squares: FloatArray

    @property
    def n(self) -> int:
        """All images."""
        return int(self.cells.sum())

    @property
    def count(self) -> FloatArray:
        """``[B]``: images in each bin."""
        return np.asarray(self.cells.sum(axis=0))

    @property
    def confidence(self) -> FloatArray:
        """``[B]``: mean confidence in each bin; NaN where there is no image."""
        return _mean(self.sums.sum(axis=0), self.count, np.nan)

    @property
    def accuracy(self) -> FloatArray:
        """``[B]``: share of images that the classifier gets right in each bin; NaN where there is no image."""
        return _mean(self.cells[1], self.count, np.nan)

    @property
    def gaps(self) -> FloatArray:
        """``[B]``: accuracy minus confidence, times the share of images in the bin; below 0 where overconfident."""
        return np.asarray((self.cells[1] - self.sums.sum(axis=0)) / self.n)

    @property
    def error(self) -> float:
        """The calibration error: the gaps without their signs, summed."""
        return float(np.abs(self.gaps).sum())

    def interval(self, level: float = 0.95, *, seed: int = 0, replicates: int = 1000) -> Interval:
        """Interval of the calibration error for other images, with the bins as they are; see :meth:`replicates`."""
        return inverted_interval(self.gaps, self.replicates(seed=seed, count=replicates), level)

    def replicates(self, *, seed: int, count: int) -> FloatArray:
        r"""``[count, B]``: the gaps of bootstrap resamples of the images, at a cost that does not grow with n.

        No image is drawn: the counts of the 2B cells (bin, right or wrong) of a resample are multinomial. The
        confidences within a cell are few or alike; the sum of m of them is drawn from the normal law with the mean and
        variance that m draws from the cell have. So means and covariances of the gaps are those of a plain resampling.
        """
        rng = np.random.default_rng(seed)
        mean = _mean(self.sums, self.cells, 0.0).ravel()
        variance = np.maximum(_mean(self.squares, self.cells, 0.0).ravel() - mean**2, 0.0)
        drawn = rng.multinomial(self.n, self.cells.ravel() / self.n, size=count).astype(np.float64)
        confidences = drawn * mean + np.sqrt(drawn * variance) * rng.standard_normal(drawn.shape)
        wrong, right = np.split(confidences, 2, axis=1)
        bins = self.edges.size - 1
        return np.asarray((drawn[:, bins:] - wrong - right) / self.n)


def reliability(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS) -> Reliability:
    """Bins of equal width from 0 to 1.

    Parameters
    ----------
    confidence : the probability of the predicted class, one per image.
    correct : whether the prediction is right.
    bins : how many; fewer hide gaps of opposite sign in one bin, more add noise.
    """
    values, right = _check(confidence, correct, bins)
    # whole numbers divided: the edge 3/15 is the same number as a confidence of 0.2
    return _binned(values, right, np.arange(bins + 1) / bins)


def equal_mass_reliability(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS) -> Reliability:
    """Bins with as many images each, up to one; equal confidences stay together, so ties may leave a bin empty.

    Parameters
    ----------
    confidence, correct, bins : as for :func:`reliability`.
    """
    values, right = _check(confidence, correct, bins)
    last = -(-values.size * np.arange(1, bins) // bins) - 1
    return _binned(values, right, np.concatenate([[0.0], np.sort(values)[last], [1.0]]))


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS) -> float:
    """ECE over bins of equal width: the error of :func:`reliability`, which gives the interval too."""
    return reliability(confidence, correct, bins).error


def adaptive_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS) -> float:
    """ECE over bins of equal mass (AdaECE; Mukhoti et al., NeurIPS 2020): the error of :func:`equal_mass_reliability`.

    Modern networks put most images into the last bin of equal width, which then decides alone; here each part of
    the images has the same say.
    """
    return equal_mass_reliability(confidence, correct, bins).error


def check_bins(bins: int) -> None:
    """Refuse less than one bin."""
    if bins < 1:
        raise DataError(f"calibration needs at least one bin; there are {bins}")


def bin_of(values: FloatArray, edges: FloatArray) -> NDArray[np.intp]:
    """The bin of each value, open below and closed above; what lies at the lowest edge belongs to the first bin."""
    return edges[1:-1].searchsorted(values, side="left")


def _binned(values: FloatArray, right: Correct, edges: FloatArray) -> Reliability:
    bins = edges.size - 1
    cell = bin_of(values, edges) + bins * right

    def total(weights: FloatArray) -> FloatArray:
        return np.bincount(cell, weights, 2 * bins).astype(np.float64).reshape(2, bins)

    return Reliability(edges, total(np.ones_like(values)), total(values), total(values**2))


def _check(confidence: ArrayLike, correct: ArrayLike, bins: int) -> tuple[FloatArray, Correct]:
    check_bins(bins)
    values = check_scores(confidence, "confidences")
    if values.min() < 0.0 or values.max() > 1.0 + _ROUNDING:
        raise DataError(
            f"confidences are probabilities; these reach from {values.min():g} to {values.max():g} (logits? percent?)"
        )
    return np.minimum(values, 1.0), check_correct(correct, values.size)


def _mean(total: FloatArray, count: FloatArray, empty: float) -> FloatArray:
    return np.asarray(np.divide(total, count, out=np.full(total.shape, empty), where=count > 0))
