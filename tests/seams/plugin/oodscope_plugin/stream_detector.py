"""A stream detector: the range of the logits, less its mean over the images before."""

import torch

from oodscope import Needs
from oodscope.detectors.base import Cost, Paper
from oodscope.detectors.streaming import StreamDetector


class RunningRange(StreamDetector):
    """Smallest minus largest logit, less the mean of that over the stream so far."""

    name = "running_range"
    paper = Paper("A plugin", "Nobody et al.", "nowhere 2026")
    needs = Needs.LOGITS
    cost = Cost.LOGITS

    def __init__(self, mode="causal"):
        self.mode = mode

    def _begin(self):
        self._sum, self._count = 0.0, 0

    def _describe(self, batch):
        return (batch.logits.amin(dim=1) - batch.logits.amax(dim=1),)

    def _judge(self, *images):
        return images[0] - (self._sum / self._count if self._count else 0.0)

    def _remember(self, *images):
        self._sum, self._count = self._sum + torch.sum(images[0]), self._count + len(images[0])
