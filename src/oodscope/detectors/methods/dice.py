"""DICE: keep only the weights that matter to known images."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.rectifier import Rectifier
from oodscope.models.classifier.head import Head


class DICE(Rectifier):
    r"""Weights that add little to any class on average add noise on outliers; they are set to zero.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = (W\odot M)h + b, \qquad
              M_{ci} = 1 \text{ where } W_{ci}\,\bar h_i > q_p(W\odot\bar h)

    with :math:`\bar h` the mean training feature and :math:`q_p` a percentile of the whole C x D matrix of
    contributions.

    Parameters
    ----------
    percentile : share of the weights that go; OpenOOD's default is 90. OpenOOD searches no other.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "dice"
    paper = Paper("DICE: Leveraging Sparsification for Out-of-Distribution Detection", "Sun & Li", "ECCV 2022")
    needs = Rectifier.needs | Needs.TRAIN
    cost = Cost.MOMENTS

    def __init__(self, percentile: float = 90, logit_score: LogitScore | None = None) -> None:
        self.percentile = percentile
        self.logit_score = logit_score

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        assert train.head is not None, "checked before fitting"
        if not 0 <= self.percentile < 100:
            raise DetectorError(f"dice: percentile must lie in [0, 100), not {self.percentile}")
        weight = train.head.weight.double().cpu()
        contributions = weight * train.mean_feature(self.device)
        # whatever exceeds the interpolated percentile exceeds the value just below it, and the other way round
        rank = int((contributions.numel() - 1) * (self.percentile / 100))
        threshold = contributions.flatten().kthvalue(rank + 1).values
        self.weight_ = torch.where(contributions > threshold, weight, 0.0).float().to(self.device)

    def _logits(self, features: Tensor, head: Head) -> Tensor:
        return linear(features, self.weight_, head.bias.to(features.device))
