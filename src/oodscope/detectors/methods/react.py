"""ReAct: clip large features before the head."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Needs
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.quantiles import percentiles
from oodscope.detectors.rectifier import Rectifier


class ReAct(Rectifier):
    r"""Outliers trigger a few features far beyond their usual range; clipping them takes that advantage away.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\min(h, t) + b

    with :math:`t` a percentile of all feature values on held-out in-distribution images (on the training
    images, where there are no others).

    Parameters
    ----------
    percentile : that defines :math:`t`.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "react"
    paper = Paper("ReAct: Out-of-distribution Detection With Rectified Activations", "Sun et al.", "NeurIPS 2021")
    needs = Rectifier.needs | Needs.HELD_OUT
    grid = {"percentile": (85, 90, 95, 99)}

    def __init__(self, percentile: float = 90, logit_score: LogitScore | None = None) -> None:
        self.percentile = percentile
        self.logit_score = logit_score

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if not 0 < self.percentile <= 100:
            raise DetectorError(f"react: percentile must lie in (0, 100], not {self.percentile}")
        (self.threshold_,) = percentiles(val, "features", [self.percentile], self.device)

    def _rectify(self, features: Tensor) -> Tensor:
        return features.clamp(max=self.threshold_)
