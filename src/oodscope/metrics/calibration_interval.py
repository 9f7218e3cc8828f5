r"""Interval of a calibration error, which is a sum of absolute gaps, by inverting a test.

The observed error :math:`\sum_b |g_b|` is too large, because noise opens gaps where there are none, and a bootstrap
resample adds noise to noise: the middle 95 % of its errors miss the error of a perfectly calibrated network *always*.
So resamples are used for the noise :math:`e = g^* - g` only, and the true gaps are sought along a path on which every
gap of the sample shrinks, or grows, by the same number u of its standard errors,

.. math:: \delta_b(u) = \mathrm{sign}(g_b) \max(|g_b| - u s_b, 0), \qquad T(u) = \sum_b |\delta_b(u) + e_b| .

The ends are the errors :math:`\sum_b |\delta_b(u)|` at which what was observed is just the upper, or the lower, tail of
:math:`T(u)`. Where perfect calibration explains the sample, the lower end is 0.
"""

import numpy as np

from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.scores import FloatArray

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
    # a fit that is better than chance is no evidence of an error below 0
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
