"""A metric alone: it belongs to no protocol."""

import numpy as np

from oodscope import Metric


def _median(values, weights):
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) >= weights.sum() / 2
    return values[order][np.argmax(reached)]


def _gap(columns, weights):
    score, is_ood = columns["score"], columns["is_ood"]
    return float(_median(score[is_ood], weights[is_ood]) - _median(score[~is_ood], weights[~is_ood]))


MEDIAN_GAP = Metric(
    "median_gap", "Median gap", True, "median score of OOD images minus that of ID images", "number", value=_gap
)
