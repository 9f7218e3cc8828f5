"""One sort of the ID and OOD scores, from which every point metric comes."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.ranking.walk import Positive, Walk
from oodscope.metrics.scores import FloatArray, check_scores


class Ranking:
    r"""How a detector orders an ID and an OOD sample. Larger score = more OOD.

    The scores are reduced to two counts per distinct score :math:`v`: how many ID and how many OOD scores are
    :math:`\le v`. Tied scores share one entry, so every metric is exact under ties.

    Parameters
    ----------
    id_scores, ood_scores : one finite score per image; neither may be empty.
    """

    def __init__(self, id_scores: ArrayLike, ood_scores: ArrayLike) -> None:
        self.id_sorted: FloatArray = np.sort(check_scores(id_scores, "ID scores"))
        ood_sorted = np.sort(check_scores(ood_scores, "OOD scores"))
        self.n_id, self.n_ood = self.id_sorted.size, ood_sorted.size

        both = np.concatenate([self.id_sorted, ood_sorted])
        # The stable sort merges two sorted runs in linear time; the unstable one would start again.
        order = np.argsort(both, kind="stable")
        both = both[order]
        last = np.append(np.flatnonzero(both[1:] != both[:-1]), both.size - 1)
        self._ood_up_to = np.cumsum(order >= self.n_id, dtype=np.float64)[last]
        self._id_up_to = last + 1.0 - self._ood_up_to

    def __repr__(self) -> str:
        return f"Ranking(n_id={self.n_id}, n_ood={self.n_ood}, auroc={self.auroc:.4f})"

    def walk(self, positive: Positive) -> Walk:
        """The counts met from the highest score down (``"ood"``) or from the lowest score up (``"id"``)."""
        if positive == "ood":
            return self._ood_walk
        if positive == "id":
            return self._id_walk
        raise UnknownNameError("positive class", positive, ("ood", "id"))

    @property
    def auroc(self) -> float:
        """Chance that an OOD image scores above an ID image, a tie counting half; alike from either side."""
        return float(self._ood_walk.auroc())

    def aupr(self, positive: Positive, trapezoid: bool = False) -> float:
        """Area under the precision-recall curve: average precision, or the trapezoid area of the papers."""
        walk = self.walk(positive)
        return float(walk.trapezoid_aupr() if trapezoid else walk.average_precision())

    def fpr_at_tpr(self, tpr: float = 0.95, *, positive: Positive) -> float:
        """False-positive rate at the first ROC vertex with a true-positive rate of at least ``tpr``.

        ``positive="ood"``: the share of ID flagged when 95 % of OOD is caught (OpenOOD). ``positive="id"``:
        the share of OOD kept when 95 % of ID is kept (most papers).
        """
        return float(self.walk(positive).fpr_at_tpr(tpr))

    def tpr_at_fpr(self, fpr: float = 0.05, *, positive: Positive) -> float:
        """The highest true-positive rate whose false-positive rate is at most ``fpr``."""
        return float(self.walk(positive).tpr_at_fpr(fpr))

    def roc(self, points: int | None = None) -> tuple[FloatArray, FloatArray]:
        """The ROC curve, OOD positive: (fpr, tpr) at every distinct score, from (0, 0) to (1, 1).

        ``points`` keeps at most so many of the vertices, evenly spaced along the curve, for drawing.
        """
        fpr = (self.n_id - np.append(0.0, self._id_up_to)[::-1]) / self.n_id
        tpr = (self.n_ood - np.append(0.0, self._ood_up_to)[::-1]) / self.n_ood
        if points is None or points >= fpr.size:
            return fpr, tpr
        if points < 2:
            raise DataError(f"a curve needs at least 2 points; points is {points}")
        along = np.linspace(0.0, 2.0, points)[1:-1]
        kept = np.unique(np.concatenate([[0], np.searchsorted(fpr + tpr, along), [fpr.size - 1]]))
        return fpr[kept], tpr[kept]

    @cached_property
    def _id_walk(self) -> Walk:
        id_before, ood_before = _shifted(self._id_up_to), _shifted(self._ood_up_to)
        steps = np.flatnonzero(self._id_up_to > id_before)
        return Walk(
            tp=self._id_up_to[steps],
            fp=self._ood_up_to[steps],
            fp_before=ood_before[steps],
            n_positive=self.n_id,
            n_negative=self.n_ood,
        )

    @cached_property
    def _ood_walk(self) -> Walk:
        id_below, ood_below = _shifted(self._id_up_to), _shifted(self._ood_up_to)
        steps = np.flatnonzero(self._ood_up_to > ood_below)[::-1]
        return Walk(
            tp=self.n_ood - ood_below[steps],
            fp=self.n_id - id_below[steps],
            fp_before=self.n_id - self._id_up_to[steps],
            n_positive=self.n_ood,
            n_negative=self.n_id,
        )


def _shifted(up_to: FloatArray) -> FloatArray:
    """Counts strictly below each distinct score, from the counts up to it."""
    return np.concatenate([[0.0], up_to[:-1]])
