"""LTS: logits grow with the share of an image's largest features."""

from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.rectifier import Rectifier, kept, ratio, top_values
from oodscope.models.classifier.head import Head


class LTS(Rectifier):
    r"""Logit scaling: SCALE on the logits, with a square in place of the exponential.

    .. math:: s(x) = -\log\sum_c e^{a z_c}, \qquad a = \biggl(\frac{\sum_i h_i^+}{\sum_{i\in\mathrm{top}_k} h_i^+}
              \biggr)^2, \quad z = Wh + b

    with :math:`h^+ = \max(h, 0)` and the k largest features above the percentile; a = 1 for an image without positive
    features. The bias is scaled too. Like ASH and SCALE it is made for wide ImageNet networks and can fail on small
    ones: compare it under a tuned track.

    Parameters
    ----------
    percentile : how many percent of the features do not count as large; the authors search 65 to 99.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "lts"
    paper = Paper("Logit Scaling for Out-of-Distribution Detection", "Djurisic, Liu & Nikolic", "arXiv 2409.01175")
    grid = {"percentile": (65, 80, 85, 90, 95, 99)}

    def __init__(self, percentile: float = 90, logit_score: LogitScore | None = None) -> None:
        self.percentile = percentile
        self.logit_score = logit_score

    def _logits(self, features: Tensor, head: Head) -> Tensor:
        if not 0 <= self.percentile < 100:
            raise DetectorError(f"lts: percentile must lie in [0, 100), not {self.percentile}")
        positive = features.clamp(min=0)
        top = precise(top_values(positive, kept(features.shape[1], self.percentile))).sum(dim=1)
        scale = ratio(precise(positive).sum(dim=1), top).square()
        return precise(head.logits(features)) * scale.unsqueeze(1)
