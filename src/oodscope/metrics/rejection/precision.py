r"""Precision of a threshold where outliers are rare: what an operator sees.

.. math:: \mathrm{precision}(\pi) = \frac{\pi\,\mathrm{TPR}}{\pi\,\mathrm{TPR} + (1-\pi)\,\mathrm{FPR}}

with :math:`\pi` the share of outliers in operation, which no test set knows. At 5 % false alarms and 80 % caught, of
the flagged images 94 % are outliers if half of all images are, and 14 % if one of a hundred is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.ranking.walk import most_count
from oodscope.metrics.scores import FloatArray, check_scores


@dataclass(frozen=True)
class Precision:
    """Precision at one prevalence, with its interval.

    Parameters
    ----------
    value : NaN where nothing is flagged.
    tpr, fpr : shares of OOD and ID images above the threshold, in the sample.
    """

    prevalence: float
    value: float
    interval: Interval
    tpr: float
    fpr: float


def precision_at(tpr: ArrayLike, fpr: ArrayLike, prevalence: float) -> FloatArray:
    """The equation above; 1 where nothing but outliers is flagged, NaN where nothing is."""
    if not 0.0 < prevalence < 1.0:
        raise DataError(f"a prevalence lies between 0 and 1, such as 0.01; it is {prevalence}")
    caught = prevalence * np.asarray(tpr, dtype=np.float64)
    flagged = caught + (1.0 - prevalence) * np.asarray(fpr, dtype=np.float64)
    return np.divide(caught, flagged, out=np.full_like(flagged, np.nan), where=flagged > 0)


def measure_precision(
    id_scores: ArrayLike,
    ood_scores: ArrayLike,
    prevalence: float,
    fpr: float = 0.05,
    *,
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> Precision:
    """Precision of the lowest threshold that flags at most the share ``fpr`` of the ID images.

    The interval is about this threshold on other images. Its rate of false alarms there is not the one that it was
    found at: over draws of the ID images it follows a Beta law, exactly and whatever the scores are (as in
    ``oodscope.metrics.rejection.conformal``), and at a small prevalence that is most of the doubt. The share caught is
    drawn from Jeffreys' Beta law of its counts. Both are drawn ``replicates`` times and put into the equation.
    """
    check_level(level)
    known, foreign = np.sort(check_scores(id_scores, "ID scores")), np.sort(check_scores(ood_scores, "OOD scores"))
    n, m = len(known), len(foreign)
    allowed = int(most_count(fpr, n))
    place = n - allowed  # the threshold is the place-th smallest; those above it are flagged
    if place < 1:
        raise DataError(f"a rate of false alarms lies below 1, such as 0.05; it is {fpr}")
    rng = np.random.default_rng(seed)
    threshold = known[place - 1]
    tpr = 1.0 - foreign.searchsorted(threshold, side="right") / m
    rate = 1.0 - known.searchsorted(threshold, side="right") / n
    value = float(precision_at(tpr, rate, prevalence))
    caught = rng.beta(tpr * m + 0.5, (1.0 - tpr) * m + 0.5, size=replicates)
    drawn = precision_at(caught, rng.beta(allowed + 1, place, size=replicates), prevalence)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    if not np.isnan(value):
        low, high = min(low, value), max(high, value)
    return Precision(prevalence, value, Interval(float(low), float(high), level, f"beta-draws-{replicates}"), tpr, rate)
