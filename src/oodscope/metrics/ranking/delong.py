r"""Confidence intervals for an AUROC, and for a mean of AUROCs that share one ID sample.

DeLong, DeLong & Clarke-Pearson (Biometrics 1988) write the AUROC as the mean of *placements*: :math:`V_j`,
the share of ID scores below OOD score j, and :math:`W_i`, the share of OOD scores above ID score i, a tie
counting half. Its variance is that of two means,

.. math:: \widehat{\mathrm{Var}}(A) = S^2_W / n_\mathrm{id} + S^2_V / n_\mathrm{ood},

and mid-ranks give all placements from one sort (Sun & Xu, IEEE Signal Processing Letters 2014).
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy.special import expit, logit, ndtri

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.scores import FloatArray


def auroc_interval(ranking: Ranking, level: float = 0.95) -> Interval:
    """Interval of one AUROC; see :func:`mean_auroc_interval`."""
    return mean_auroc_interval([ranking], level)


def mean_auroc_interval(rankings: Sequence[Ranking], level: float = 0.95) -> Interval:
    r"""Interval of the unweighted mean of the AUROCs of K OOD sets against one ID sample.

    The ID placements are averaged over the sets before their variance is taken, because one ID image errs
    against all sets together; the OOD samples are independent:

    .. math:: \widehat{\mathrm{Var}}(\bar A) = S^2_{\bar W}/n_\mathrm{id} + K^{-2} \sum_k S^2_{V_k} / n_k .

    The interval is symmetric on the logit scale,
    :math:`\mathrm{logit}\,\bar A \pm z\,\mathrm{se}/(\bar A(1-\bar A))` (Qin & Hotilovac 2008): it stays
    inside (0, 1), and near AUROC 1 it covers where the plain :math:`\bar A \pm z\,\mathrm{se}` does not.

    **Perfect separation.** If every set is separated (mean exactly 1, or 0) the variance is 0 and the logit
    infinite. Form :math:`m = \min(n_\mathrm{id}, n_1, \dots, n_K)` disjoint tuples with one image of each
    sample: a tuple is in order with probability at most :math:`\bar A`, so separation has probability at most
    :math:`\bar A^m`, and :math:`\bar A \ge (\alpha/2)^{1/m}` is the Clopper-Pearson bound of m successes in m
    trials ("exact-separation"). If only some sets are separated, each of them adds, instead of no variance,
    that of half a failure in :math:`m_k + 1` trials: :math:`p(1-p)/m_k` with :math:`1 - p = 1/(2 m_k + 2)`.

    **One image on a side** has no sample variance; :math:`A(1-A)`, the largest that placements of mean A can
    have, stands in. Scores that are all equal have AUROC 1/2 in every sample: their interval is a point.
    """
    check_level(level)
    _check_shared_id(rankings)
    mean = float(np.mean([ranking.auroc for ranking in rankings]))
    tail = (1.0 - level) / 2.0
    if mean in (0.0, 1.0):
        bound = tail ** (1.0 / min(_smaller(ranking) for ranking in rankings))
        low, high = (bound, 1.0) if mean == 1.0 else (0.0, 1.0 - bound)
        return Interval(low, high, level, "exact-separation")
    slope = 1.0 / (mean * (1.0 - mean))
    reach = -float(ndtri(tail)) * sqrt(_variance_of_mean(rankings)) * slope
    centre = float(logit(mean))
    return Interval(float(expit(centre - reach)), float(expit(centre + reach)), level, "delong-logit")


def _variance_of_mean(rankings: Sequence[Ranking]) -> float:
    # The walks of all rankings step through the same distinct ID scores, so their placements line up.
    id_walks = [ranking.walk("id") for ranking in rankings]
    id_placements = np.mean([walk.placements() for walk in id_walks], axis=0)
    variance = _variance(id_placements, id_walks[0].gained) / rankings[0].n_id
    for ranking in rankings:
        walk = ranking.walk("ood")
        own = _variance(walk.placements(), walk.gained) / ranking.n_ood
        if ranking.auroc in (0.0, 1.0):
            m = _smaller(ranking)
            own = (m + 0.5) * 0.5 / (m + 1) ** 2 / m
        variance += own / len(rankings) ** 2
    return variance


def _variance(placements: FloatArray, count: FloatArray) -> float:
    n = count.sum()
    mean = placements @ count / n
    if n == 1:
        return float(mean * (1.0 - mean))
    return float((placements - mean) ** 2 @ count / (n - 1))


def _smaller(ranking: Ranking) -> int:
    return min(ranking.n_id, ranking.n_ood)


def _check_shared_id(rankings: Sequence[Ranking]) -> None:
    if not rankings:
        raise DataError("a mean AUROC needs at least one OOD set")
    first = rankings[0].id_sorted
    if not all(np.array_equal(ranking.id_sorted, first) for ranking in rankings[1:]):
        raise DataError("a mean AUROC takes OOD sets ranked against one ID sample; their ID scores differ")
