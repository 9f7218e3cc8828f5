"""Open-set recognition: classify the ID images that are kept, reject OOD images."""

import numpy as np

from oodscope import Metric, Protocol
from oodscope.document.figure import Axis, Figure, Line, numbers
from oodscope.protocols.ranking import rank_metrics


def oscr(columns, weights):
    """The probability that an ID image is classified correctly and scores below an OOD image, ties counting half."""
    score, is_ood, correct = columns["score"], columns["is_ood"], columns["correct"]
    order = np.argsort(score[is_ood], kind="stable")
    ood, ood_weights = score[is_ood][order], weights[is_ood][order]
    above = np.append(np.cumsum(ood_weights[::-1])[::-1], 0.0)  # weight of OOD images from each place on
    at_least = above[np.searchsorted(ood, score[~is_ood], side="left")]
    more = above[np.searchsorted(ood, score[~is_ood], side="right")]
    known = weights[~is_ood]
    gain = np.sum(known * correct[~is_ood] * (at_least + more) / 2)
    return float(gain / (known.sum() * ood_weights.sum()))


OSCR = Metric(
    "oscr",
    "OSCR",
    True,
    "probability that an ID image is classified correctly and scores below an OOD image",
    value=oscr,
)


class OpenSet(Protocol):
    """Every OOD set against ``id_test``, all of them one group.

    Parameters
    ----------
    far : whether far-OOD sets count too.
    """

    name, title = "open_set", "Open-set recognition"
    summary = "Classify ID images correctly and reject OOD images."
    metrics, headline = (OSCR,), ("oscr",)
    groups = {"open": ("near", "far")}

    def __init__(self, far=True):
        self.far = far
        if not far:
            self.groups = {"open": ("near",)}

    def measure(self, scores):
        return rank_metrics(scores, self)

    def figures(self, scores, detectors, positions):
        lines = tuple(
            Line(name, numbers(np.linspace(0, 1, 5)), numbers(np.quantile(scores.scores(name), np.linspace(0, 1, 5))),
                 positions[name], "{name}: {y:.3g}")
            for name in detectors
        )  # fmt: skip
        axes = Axis("quantile", range=(0.0, 1.0)), Axis("score")
        return [Figure("open-set-quantiles", "Quantiles of open-set scores", "Drawn by a plugin.", lines, *axes)]
