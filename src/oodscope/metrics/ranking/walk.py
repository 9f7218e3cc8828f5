"""A walk down the ranking from the most positive score, on which every ranking metric is one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, floor
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.resampling.draws import Workspace
from oodscope.metrics.scores import FloatArray, IntArray

Positive = Literal["ood", "id"]


@dataclass(frozen=True)
class Walk:
    """Counts met while the threshold passes the distinct scores of the positive class, most positive first.

    Only there can a true positive be gained, so no metric needs the thresholds in between. The last axis is
    the walk; leading axes, if any, are bootstrap replicates. A replicate may gain nothing at a step: such a
    step repeats the one before it and changes no metric.

    Parameters
    ----------
    tp : positives at or beyond each step.
    fp : negatives at or beyond it; a negative tied with the positives of the step is counted.
    fp_before : negatives strictly beyond it; the tied ones are not.
    n_positive, n_negative : sizes of the two samples, or sums of their weights.
    workspace : where intermediate results live; walks that share one are used one after another.
    """

    tp: FloatArray
    fp: FloatArray
    fp_before: FloatArray
    n_positive: float
    n_negative: float
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    @cached_property
    def gained(self) -> FloatArray:
        """How many positives each step adds."""
        gained: FloatArray = self.workspace.array("gained", self.tp.shape)
        gained[..., 0] = self.tp[..., 0]
        np.subtract(self.tp[..., 1:], self.tp[..., :-1], out=gained[..., 1:])
        return gained

    @cached_property
    def _plain_average_precision(self) -> FloatArray:
        return _dot(self.gained, self._precision()) / self.n_positive

    def placements(self) -> FloatArray:
        """Share of the negatives that the positives of each step beat, a tie counting half."""
        return 1.0 - (self.fp + self.fp_before) / (2.0 * self.n_negative)

    def auroc(self) -> FloatArray:
        """Area under the ROC curve: the chance that a positive beats a negative, a tie counting half."""
        # Twice the pairs, so that halves are whole numbers and the result is rounded once.
        pairs = 2.0 * self.n_positive * self.n_negative
        passed = np.add(self.fp, self.fp_before, out=self.workspace.array("passed", self.fp.shape))
        return (pairs - _dot(self.gained, passed)) / pairs

    def average_precision(self) -> FloatArray:
        r"""Area under the precision-recall steps, :math:`\sum_k (R_k - R_{k-1}) P_k`."""
        return self._plain_average_precision

    def average_precision_at(self, prevalence: float) -> FloatArray:
        r"""Average precision if the share of positives among all images were ``prevalence``.

        Plain average precision rises with the size of the positive sample. Here both classes are reweighted, so
        that sets of any size can be compared (Siblini et al., IDA 2020, calibrate precision alike):

        .. math:: P_k = \frac{\pi\,\mathrm{TPR}_k}{\pi\,\mathrm{TPR}_k + (1 - \pi)\,\mathrm{FPR}_k}
        """
        if not 0.0 < prevalence < 1.0:
            raise DataError(f"a prevalence lies between 0 and 1; it is {prevalence}")
        # The weight of a negative when a positive weighs one.
        weight = (1.0 - prevalence) / prevalence * self.n_positive / self.n_negative
        if weight == 1.0:
            return self._plain_average_precision
        flagged = np.multiply(self.fp, weight, out=self.workspace.array("flagged", self.fp.shape))
        np.add(flagged, self.tp, out=flagged)
        # nothing flagged means nothing gained: any number but zero will do
        np.maximum(flagged, np.finfo(np.float64).tiny, out=flagged)
        precision = np.divide(self.tp, flagged, out=flagged)
        return _dot(self.gained, precision) / self.n_positive

    def trapezoid_aupr(self) -> FloatArray:
        """Area under the straight lines between the precision-recall points, from (recall 0, precision 1).

        Davis & Goadrich (ICML 2006) show that these lines are not attainable and flatter a detector; OpenOOD
        and DCV-ROOD report this area.
        """
        tp_before = self.tp - self.gained
        flagged = tp_before + self.fp_before
        before = np.where(flagged > 0, tp_before / np.where(flagged > 0, flagged, 1.0), 1.0)
        return _dot(self.gained, self._precision() + before) / (2.0 * self.n_positive)

    def fpr_at_tpr(self, tpr: float) -> FloatArray:
        """False-positive rate at the first ROC vertex whose true-positive rate is at least ``tpr``."""
        if not 0.0 < tpr <= 1.0:
            raise DataError(f"tpr must lie in (0, 1]; it is {tpr}")
        step = _search(self.tp, least_count(tpr, self.n_positive), "left")
        return _pick(self.fp, step) / self.n_negative

    def tpr_at_fpr(self, fpr: float) -> FloatArray:
        """The highest true-positive rate of the ROC vertices whose false-positive rate is at most ``fpr``."""
        if not 0.0 <= fpr <= 1.0:
            raise DataError(f"fpr must lie in [0, 1]; it is {fpr}")
        passed = _search(self.fp, most_count(fpr, self.n_negative), "right")
        reached = _pick(self.tp, np.maximum(passed - 1, 0)) / self.n_positive
        return np.where(passed > 0, reached, 0.0)

    def interpolated_tpr_at_fpr(self, fpr: float) -> FloatArray:
        """The true-positive rate at ``fpr`` on the straight lines between the ROC vertices, as DCV-ROOD reads it.

        It is :meth:`tpr_at_fpr` except where positives are tied with negatives: only there a step is slanted, and the
        line gives the part of the tied positives that a fair coin among the tied images would.
        """
        if not 0.0 <= fpr <= 1.0:
            raise DataError(f"fpr must lie in [0, 1]; it is {fpr}")
        begun = _search(self.fp_before, most_count(fpr, self.n_negative), "right")
        step = np.maximum(begun - 1, 0)
        tp, fp, before, gained = (_pick(each, step) for each in (self.tp, self.fp, self.fp_before, self.gained))
        slant = np.where(fp > before, fp - before, 1.0)
        share = np.where(fp > before, np.minimum((fpr * self.n_negative - before) / slant, 1.0), 1.0)
        return np.where(begun > 0, (tp - (1.0 - share) * gained) / self.n_positive, 0.0)

    def max_f1(self) -> FloatArray:
        r"""The largest F1 of any threshold, :math:`\max_k 2 TP_k / (n_+ + TP_k + FP_k)`.

        The threshold is chosen on the test images themselves, so it flatters; a predictor that calls everything
        positive already reaches :math:`2\pi / (1 + \pi)` at a share :math:`\pi` of positives.
        """
        return np.asarray((2.0 * self.tp / (self.n_positive + self.tp + self.fp)).max(axis=-1))

    def _precision(self) -> FloatArray:
        # Where a replicate has drawn nothing yet it gains nothing either, so any finite number will do.
        flagged = np.add(self.tp, self.fp, out=self.workspace.array("flagged", self.tp.shape))
        np.maximum(flagged, np.finfo(np.float64).tiny, out=flagged)
        precision: FloatArray = np.divide(self.tp, flagged, out=flagged)
        return precision


def weighted_walk(score: FloatArray, is_ood: NDArray[np.bool_], weights: FloatArray, positive: Positive) -> Walk:
    """The walk of images that weigh ``weights`` instead of one each; an image without weight is not there.

    With counts of a resample as weights it is the walk of that resample, bit for bit.
    """
    drawn = weights > 0
    ascending = np.argsort(score[drawn], kind="stable")
    ordered, ood = score[drawn][ascending], is_ood[drawn][ascending]
    own = weights[drawn][ascending]
    if not ood.any() or ood.all():
        raise DataError("a ranking needs weight on both ID and OOD images")
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), ordered.size - 1)
    up_to = {side: np.cumsum(np.where(ood == (side == "ood"), own, 0.0))[last] for side in ("id", "ood")}
    below = {side: np.concatenate([[0.0], sums[:-1]]) for side, sums in up_to.items()}
    n_id, n_ood = float(up_to["id"][-1]), float(up_to["ood"][-1])
    if positive == "id":
        steps = np.flatnonzero(up_to["id"] > below["id"])
        return Walk(up_to["id"][steps], up_to["ood"][steps], below["ood"][steps], n_id, n_ood)
    steps = np.flatnonzero(up_to["ood"] > below["ood"])[::-1]
    return Walk(n_ood - below["ood"][steps], n_id - below["id"][steps], n_id - up_to["id"][steps], n_ood, n_id)


def least_count(share: float, n: float) -> float:
    """The smallest k with ``k / n >= share`` in float64, where ``share * n`` may round to the wrong side.

    Counts are whole numbers; where ``n`` is a sum of weights that is none, it is ``share * n``.
    """
    if n != floor(n):
        return share * n
    k = ceil(share * n)
    while (k - 1) / n >= share:
        k -= 1
    while k / n < share:
        k += 1
    return k


def most_count(share: float, n: float) -> float:
    """The largest k with ``k / n <= share`` in float64; likewise."""
    if n != floor(n):
        return share * n
    k = floor(share * n)
    while (k + 1) / n <= share:
        k += 1
    while k / n > share:
        k -= 1
    return k


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...k,...k->...", a, b))


def _search(rows: FloatArray, count: float, side: Literal["left", "right"]) -> IntArray:
    flat = rows.reshape(-1, rows.shape[-1])
    return np.array([row.searchsorted(count, side) for row in flat]).reshape(rows.shape[:-1])


def _pick(rows: FloatArray, index: IntArray) -> FloatArray:
    return np.take_along_axis(rows, index[..., None], axis=-1)[..., 0]
