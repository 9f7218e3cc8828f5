"""Metrics of open-set recognition, and the area under the precision-recall curve as OpenOOD computes it."""

import numpy as np

from oodscope.metrics.metric import Columns, Metric
from oodscope.metrics.ranking.walk import Walk, weighted_walk
from oodscope.metrics.scores import FloatArray


def oscr(columns: Columns, weights: FloatArray) -> float:
    r"""Area under the curve of ID images kept *and* classified correctly, over OOD images kept.

    .. math:: \mathrm{OSCR} = \frac{1}{n_{\mathrm{ID}}\,n_{\mathrm{OOD}}}\sum_{i\ \text{correct}}\sum_j
              \bigl([s_i < s_j] + \tfrac12[s_i = s_j]\bigr)

    (Dhamija et al., NeurIPS 2018; Vaze et al., ICLR 2022): the AUROC of the correctly classified ID images times their
    share. A perfect detector reaches the accuracy of the classifier, a perfect classifier leaves the AUROC.
    """
    known, right = ~np.asarray(columns["is_ood"], dtype=bool), np.asarray(columns["correct"], dtype=bool)
    correct = known & right
    share = float(weights[correct].sum() / weights[known].sum())
    if share == 0.0:
        return 0.0
    counted = correct | ~known
    walk = weighted_walk(columns["score"][counted], columns["is_ood"][counted], weights[counted], "ood")
    return share * float(walk.auroc())


def _trapezoid_out(columns: Columns, weights: FloatArray) -> float:
    return float(weighted_walk(columns["score"], columns["is_ood"], weights, "ood").trapezoid_aupr())


OSCR = Metric(
    "oscr",
    "OSCR",
    True,
    "share of ID images both kept and classified correctly, averaged over the shares of OOD images kept",
    value=oscr,
)
AUPR_OUT_TRAPEZOID = Metric(
    "aupr_out_trapezoid",
    "AUPR (OOD positive, trapezoid)",
    True,
    "area under straight lines between precision-recall points, OOD positive (OpenOOD)",
    positive="ood",
    sample=Walk,
    of=Walk.trapezoid_aupr,
    value=_trapezoid_out,
)

OPENSET: tuple[Metric, ...] = (OSCR, AUPR_OUT_TRAPEZOID)
"""For protocols that name them; no protocol of the package does."""
