"""A detector: how close the largest and the smallest logit are."""

from oodscope import Detector, Needs
from oodscope.detectors.base import Cost, Paper


class LogitRange(Detector):
    """Smallest minus largest logit, times a scale."""

    name = "logit_range"
    paper = Paper("A plugin", "Nobody et al.", "nowhere 2026")
    needs = Needs.LOGITS
    cost = Cost.LOGITS

    def __init__(self, scale=1.0):
        self.scale = scale

    def _fit(self, train, val, ood_val):
        pass

    def _score(self, batch):
        return self.scale * (batch.logits.amin(dim=1) - batch.logits.amax(dim=1))
