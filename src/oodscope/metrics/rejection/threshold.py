r"""The threshold that keeps a given share of a sample, and how uncertain it is.

The papers write it for a score :math:`T` that is large for familiar images: with
:math:`\gamma' = Q_{1-q}(T)`, NumPy's linear quantile, an image is rejected iff :math:`T \le \gamma'`. Here
:math:`s = -T` is large for OOD images, :math:`\gamma = -\gamma' = Q_q(s)`, and an image is rejected iff
:math:`s \ge \gamma`. Negation is exact, so both forms take the same decision on every image.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray, check_scores

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Threshold:
    r"""Reject an image iff its score is at least ``value``.

    Parameters
    ----------
    value : :math:`\gamma`.
    keep : the share of the sample that was to be kept.
    kept : the share of the sample that is kept. At most one image in n more than ``keep``; less where scores
        are tied at :math:`\gamma`, because equal scores are rejected together.
    tied : the share of the sample that lies exactly at :math:`\gamma`. Scores that saturate (a softmax of 1.0)
        show here: then the threshold cannot be set finely enough to keep what was asked.
    n : size of the sample.
    """

    value: float
    keep: float
    kept: float
    tied: float
    n: int


class ThresholdSample:
    """The scores that thresholds are read from, sorted once.

    Parameters
    ----------
    scores : one per image, larger = more OOD.
    name : what an error calls them.
    """

    def __init__(self, scores: ArrayLike, name: str = "threshold scores") -> None:
        # ascending in T = -s, which is the order of the papers' quantile
        self._familiar: FloatArray = np.sort(-check_scores(scores, name))

    @property
    def n(self) -> int:
        """How many images."""
        return self._familiar.size

    def threshold(self, keep: float) -> Threshold:
        """The threshold that keeps the share ``keep`` (0.95, 0.99) of the sample, up to ties."""
        below, share = self._position(keep)
        value = self._between(np.array([below]), np.array([min(below + 1, self.n - 1)]), share)[0]
        rejected = int(np.searchsorted(self._familiar, value, side="right"))
        tied = rejected - int(np.searchsorted(self._familiar, value, side="left"))
        return Threshold(float(-value), keep, (self.n - rejected) / self.n, tied / self.n, self.n)

    def replicates(self, keep: float, *, seed: int, count: int) -> FloatArray:
        r"""The thresholds of ``count`` bootstrap resamples of the sample, each n images drawn from the n.

        No resample is drawn. The j-th smallest of n draws from :math:`\{1, \dots, n\}` is
        :math:`\lceil n U_{(j)} \rceil` with :math:`U_{(j)}` the j-th smallest of n uniform numbers, and a quantile
        needs two neighbours only: :math:`U_{(j+1)} \sim \mathrm{Beta}(j+1, n-j)` and
        :math:`U_{(j)} = U_{(j+1)} V^{1/j}` with :math:`V` uniform. The result has exactly the distribution of
        resampling and sorting, at a cost that does not grow with n.
        """
        below, share = self._position(keep)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
        j = below + 1
        if j == self.n:
            return -self._familiar[_rows(rng.beta(j, 1, size=count), self.n)]
        upper = rng.beta(j + 1, self.n - j, size=count)
        lower = upper * rng.random(count) ** (1.0 / j)
        return -self._between(_rows(lower, self.n), _rows(upper, self.n), share)

    def beyond(self, keep: float) -> float:
        """How many images of the sample are expected beyond the threshold, n (1 - q)."""
        return self.n * (1.0 - keep)

    def spread(self, keep: float, level: float) -> tuple[float, float]:
        """Thresholds between which the true quantile lies at this level, whatever the distribution of the scores.

        Ranks of order statistics from the binomial law; where no score is far enough out, an end is infinite.
        """
        tail = (1.0 - level) / 2.0
        ascending = -self._familiar[::-1]
        below, above = int(binom.ppf(tail, self.n, keep)), int(binom.ppf(1.0 - tail, self.n, keep)) + 1
        low = ascending[below - 1] if below >= 1 else -np.inf
        high = ascending[above - 1] if above <= self.n else np.inf
        return float(low), float(high)

    def _position(self, keep: float) -> tuple[int, float]:
        """Where the quantile lies: at a row of the sorted sample, or a share of the way to the next one.

        In whole numbers, because ``(n - 1) * (1 - 0.95)`` may round past a row and reject one image more or less.
        """
        if not 0.0 < keep < 1.0:
            raise DataError(f"the share to keep lies between 0 and 1, such as 0.95; it is {keep}")
        position = (self.n - 1) * (1 - Fraction(keep).limit_denominator(1_000_000))
        below = int(position)
        return below, float(position - below)

    def _between(self, below: Rows, above: Rows, share: float) -> FloatArray:
        low, high = self._familiar[below], self._familiar[above]
        # rounding must not carry the value onto the next score, which is to be kept
        return np.where(high > low, np.minimum(low + share * (high - low), np.nextafter(high, -np.inf)), low)


def _rows(uniform: FloatArray, n: int) -> Rows:
    return np.minimum((n * uniform).astype(np.intp), n - 1)
