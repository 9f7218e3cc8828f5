r"""Detectors over many OOD sets, each set one observation: rank tests in the manner of Demšar (JMLR 2006).

These ask whether a detector wins on *other sets like these*, and the sets are the sample. Below 8 sets they can
say next to nothing (with 6 sets no signed-rank p lies below 0.031, before any correction), so they refuse: few
sets call for paired tests on the images and Holm's correction.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray

FEWEST_SETS = 8

_EXACT = 50
"""Differences up to which the null distribution is counted out instead of taken as normal."""


def signed_rank(first: ArrayLike, second: ArrayLike) -> float:
    r"""Two-sided p of Wilcoxon's signed-rank test (Biometrics 1945) of two detectors over sets (or cells).

    Sets on which both are equal are left out, as Wilcoxon does. The null distribution is exact up to 50 sets
    without ties among the absolute differences, else normal with the correction for ties.

    Parameters
    ----------
    first, second : the metric of each detector, set by set.
    """
    values = _table([np.asarray(first), np.asarray(second)])
    return float(signed_ranks((values[0] - values[1])[None])[0])


def signed_ranks(differences: ArrayLike) -> FloatArray:
    """The p-values of :func:`signed_rank` for many pairs at once: ``[pair, set]``, first minus second."""
    values = _table(differences)
    if values.shape[1] < FEWEST_SETS:
        raise _too_few(values.shape[1], "a signed-rank test")
    sizes = np.sort(np.abs(values), axis=1)
    plain = (sizes[:, 0] > 0.0) & (np.diff(sizes, axis=1) > 0.0).all(axis=1)
    p = np.ones(len(values))
    if plain.any() and values.shape[1] <= _EXACT:
        p[plain] = wilcoxon(values[plain], axis=1, method="exact").pvalue
    else:
        plain[:] = False
    for row in np.flatnonzero(~plain):
        p[row] = _signed_rank(values[row][values[row] != 0.0])
    return p


def _signed_rank(differences: FloatArray) -> float:
    if differences.size == 0:
        return 1.0
    tied = np.unique(np.abs(differences)).size < differences.size
    if tied or differences.size > _EXACT:
        return float(wilcoxon(differences, method="approx").pvalue)
    return float(wilcoxon(differences, method="exact").pvalue)


def friedman(table: ArrayLike) -> float:
    """p of Friedman's test (JASA 1937): do at least two of the detectors differ over these sets?

    Parameters
    ----------
    table : ``[detector, set]``, at least 3 detectors and 8 sets.
    """
    values = _check_many(table, "Friedman's test")
    if np.all(values == values[0]):
        return 1.0
    return float(friedmanchisquare(*values).pvalue)


@dataclass(frozen=True)
class CriticalDifference:
    """The data of a critical-difference diagram.

    Parameters
    ----------
    average_ranks : of each detector over the sets; 1 is best.
    difference : average ranks closer than this are not distinguished.
    groups : the bars of the diagram: each a largest run of detectors, best first, that are not distinguished.
    """

    average_ranks: tuple[float, ...]
    difference: float
    groups: tuple[tuple[int, ...], ...]


def critical_difference(table: ArrayLike, *, higher_is_better: bool = True, alpha: float = 0.05) -> CriticalDifference:
    r"""Nemenyi's critical difference of average ranks, :math:`q_\alpha \sqrt{k(k+1)/6N}`, k detectors, N sets.

    :math:`q_\alpha` is the quantile of the studentized range for infinite degrees of freedom over
    :math:`\sqrt 2`. Whether two detectors differ depends here on which others stand in the table (Benavoli,
    Corani & Mangili 2016), so read the diagram as a description; for a claim about two use a test of two.

    Parameters
    ----------
    table : ``[detector, set]``, at least 3 detectors and 8 sets.
    """
    if not 0.0 < alpha < 1.0:
        raise DataError(f"alpha lies between 0 and 1; it is {alpha}")
    values = _check_many(table, "a critical difference")
    k, sets = values.shape
    ranks = rankdata(-values if higher_is_better else values, axis=0).mean(axis=1)
    q = float(studentized_range.ppf(1.0 - alpha, k, np.inf)) / sqrt(2.0)
    difference = q * sqrt(k * (k + 1) / (6.0 * sets))
    return CriticalDifference(tuple(map(float, ranks)), difference, _bars(ranks, difference))


def _bars(ranks: FloatArray, difference: float) -> tuple[tuple[int, ...], ...]:
    order = np.argsort(ranks, kind="stable")
    ends = np.searchsorted(ranks[order], ranks[order] + difference, "left")
    bars, furthest = [], 0
    for start, end in enumerate(ends):
        if end - start > 1 and end > furthest:
            bars.append(tuple(int(detector) for detector in order[start:end]))
        furthest = max(furthest, int(end))
    return tuple(bars)


def _check_many(table: ArrayLike, test: str) -> FloatArray:
    values = _table(table)
    if values.shape[0] < 3:
        raise DataError(f"{test} is for 3 detectors or more; compare two with signed_rank")
    if values.shape[1] < FEWEST_SETS:
        raise _too_few(values.shape[1], test)
    return values


def _table(table: ArrayLike) -> FloatArray:
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"every detector needs one number for every set: {error}") from None
    if values.ndim != 2:
        raise DataError(f"every detector needs one number for every set; the shape is {values.shape}")
    if not np.isfinite(values).all():
        raise DataError("a metric over sets must be finite everywhere; leave out sets that a detector lacks")
    return values


def _too_few(sets: int, test: str) -> DataError:
    return DataError(
        f"{test} over {sets} sets says next to nothing (it needs {FEWEST_SETS}); "
        "compare on the images instead: paired_delong or paired_bootstrap, with holm over the comparisons"
    )
