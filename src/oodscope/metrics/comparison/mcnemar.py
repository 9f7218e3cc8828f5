"""Two detectors' errors on the same images, such as the detection error rate of a rejection protocol."""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, ndtri

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.paired import PairedTest
from oodscope.metrics.interval import check_level


def mcnemar(first_errors: ArrayLike, second_errors: ArrayLike, level: float = 0.95) -> PairedTest:
    r"""McNemar's test (Psychometrika 1947), exact, of two error rates on the same images.

    Only images on which one of the two errs say anything: if both are alike, the b errors of the first alone
    and the c of the second alone are a fair coin's, :math:`p = 2 P(\mathrm{Bin}(b + c, 1/2) \le \min(b, c))`.
    The interval of the difference :math:`(b - c)/n` is that of Agresti & Min (Statistics in Medicine 2005):
    half a case is added to each of the four outcomes, which keeps it honest where few images disagree.

    Parameters
    ----------
    first_errors, second_errors : one truth value per image: did the detector err on it?
    """
    check_level(level)
    first, second = _check(first_errors, "first"), _check(second_errors, "second")
    if first.size != second.size:
        raise DataError(f"paired errors need the same images; there are {first.size} and {second.size}")
    n = first.size
    only_first, only_second = int(np.sum(first & ~second)), int(np.sum(second & ~first))
    discordant = only_first + only_second
    p = min(1.0, 2.0 * float(bdtr(min(only_first, only_second), discordant, 0.5))) if discordant else 1.0
    b, c, total = only_first + 0.5, only_second + 0.5, n + 2.0
    centre = (b - c) / total
    error = sqrt((b + c) - (b - c) ** 2 / total) / total
    reach = -float(ndtri((1.0 - level) / 2.0)) * error
    low, high = max(centre - reach, -1.0), min(centre + reach, 1.0)
    return PairedTest(
        float(first.mean()),
        float(second.mean()),
        (only_first - only_second) / n,
        low,
        high,
        level,
        p,
        error,
        "mcnemar-exact",
    )


def _check(errors: ArrayLike, which: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    array = np.asarray(errors)
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"the errors of the {which} detector must be a vector, one per image; shape {array.shape}")
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise DataError(f"the errors of the {which} detector must be true or false, one per image")
    return array.astype(np.bool_)
