r"""Which images of a batch are outliers, with a bounded share of false ones among those that are flagged.

The false discovery rate (FDR) is the expected share of ID images among the flagged. Benjamini & Hochberg (1995) on
conformal p-values keep it at or below a target (Bates, Candes, Lei, Romano & Sesia, Annals of Statistics 2023). What it
promises, and what not:

- The promise is **marginal**: it holds on average over calibration sets *and* batches. For one calibration set the mean
  FDR over batches may lie far above the target (with 200 images between 0.2 % and 28 % at a target of 10 %).
- The **conditional** form holds for a share ``confidence`` of calibration sets, by p-values that stay valid for all
  thresholds at once: with r - 1 calibration scores at or above a score, its tail probability is at most
  :math:`U_{(r)}`, the r-th smallest of n uniform numbers, and with probability :math:`1-\delta`

  .. math:: U_{(r)} \le b_r = 1 - \delta^{1/k}\Bigl(\prod_{j=0}^{k-1}\frac{n+1-r-j}{n-j}\Bigr)^{1/k}\quad
            \text{for all } r \text{ (generalised Simes inequality, } k = \lfloor n/2\rfloor).

- Both are about ID images like the calibration images. ID images under other conditions (csID) count as outliers.
- The smallest p-value is :math:`1/(n+1)`: of m images fewer than :math:`m/(\alpha(n+1))` can never be flagged together.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.multiplicity import benjamini_hochberg
from oodscope.metrics.interval import check_level
from oodscope.metrics.rejection.conformal import Calibration
from oodscope.metrics.scores import FloatArray


@dataclass(frozen=True, eq=False)
class BatchSelection:
    """The flagged images of a batch.

    Parameters
    ----------
    flagged : one entry per image of the batch.
    p_values : that the decision was made on; adjusted ones where ``confidence`` is given.
    target : tolerated share of ID images among the flagged.
    confidence : of the promise over calibration sets; None for the marginal promise.
    n : calibration images.
    least : the fewest images that can be flagged at all, because no p-value lies below that of the largest score.
    """

    flagged: NDArray[np.bool_]
    p_values: FloatArray
    target: float
    confidence: float | None
    n: int
    least: int

    @property
    def warning(self) -> str:
        """What the number of calibration images makes impossible; empty where a single outlier can be flagged."""
        size = len(self.flagged)
        if self.least <= 1:
            return ""
        if self.least > size:
            return f"{self.n:,} calibration images are too few: none of these {size:,} images can be flagged"
        return (
            f"{self.n:,} calibration images are few for a batch of {size:,}: fewer than {self.least:,} outliers in it "
            "are never flagged"
        )

    def __str__(self) -> str:
        share = f"of the flagged images at most {100 * self.target:g} % are in-distribution"
        if self.confidence is None:
            over = "on average over calibration sets and batches (marginal)"
        else:
            over = f"on average over batches, for {100 * self.confidence:g} % of calibration sets (conditional)"
        return f"{share}, {over}; covariate-shifted images are not covered and may be flagged"


def select_outliers(
    calibration: Calibration, scores: ArrayLike, target: float, confidence: float | None = None
) -> BatchSelection:
    """Flag outliers in a batch at a false discovery rate of at most ``target``.

    Parameters
    ----------
    calibration : scores of held-out ID images.
    scores : of the batch, larger = more OOD. The batch is decided as a whole: take it as large as it comes, and do not
        choose it by its scores.
    target : tolerated share of ID images among the flagged, such as 0.1.
    confidence : for the promise that holds for this share of calibration sets; it flags fewer.
    """
    if not 0.0 < target < 1.0:
        raise DataError(f"a false discovery rate lies between 0 and 1, such as 0.1; it is {target}")
    p_values = calibration.p_values(scores)
    n = len(calibration.scores)
    smallest = 1.0 / (n + 1)
    if confidence is not None:
        check_level(confidence)
        bounds = conditional_bounds(n, 1.0 - confidence)
        p_values = bounds[np.rint(p_values * (n + 1)).astype(np.int64) - 1]
        smallest = float(bounds[0])
    # rounding must not make a p-value that is exactly enough too large
    flagged = benjamini_hochberg(p_values) <= target * (1 + 1e-12)
    least = max(1, ceil(len(p_values) * smallest / target * (1 - 1e-12)))
    return BatchSelection(np.asarray(flagged), p_values, target, confidence, n, least)


@cache
def conditional_bounds(n: int, delta: float) -> FloatArray:
    r"""``[n + 1]``: :math:`b_1 \le \dots \le b_n`, then 1: above all order statistics of n uniform numbers at once."""
    k = max(1, n // 2)
    left = n + 1 - np.arange(1, n + 1, dtype=np.float64)  # n + 1 - r
    whole = left >= k
    # the product is zero from where a factor is: no bound but 1
    logs = np.where(whole, gammaln(left + 1) - gammaln(np.maximum(left - k, 0.0) + 1), -np.inf)
    share = (logs - (gammaln(n + 1) - gammaln(n - k + 1)) + np.log(delta)) / k
    return np.append(-np.expm1(share), 1.0)
