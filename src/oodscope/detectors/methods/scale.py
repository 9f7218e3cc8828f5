"""SCALE: scale all features by how much of their sum the largest hold."""

from torch import Tensor

from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.rectifier import TopShare, ratio


class Scale(TopShare):
    r"""Scaling, not pruning, is what helps: known images spread their sum over more features and grow more.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\,(h\,e^{s_1/s_2}) + b

    with :math:`s_1` the sum of all features and :math:`s_2` of the k largest. An image without any positive
    feature counts as :math:`s_1/s_2 = 1`.

    Parameters
    ----------
    percentile : that the k largest features lie above, :math:`k = D - \mathrm{round}(D\,p/100)`, one at
        least; the paper's default is 85.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "scale"
    paper = Paper(
        "Scaling for Training Time and Post-hoc Out-of-distribution Detection Enhancement", "Xu et al.", "ICLR 2024"
    )
    prunes = False

    def __init__(self, percentile: float = 85, logit_score: LogitScore | None = None) -> None:
        self.percentile = percentile
        self.logit_score = logit_score

    def _factor(self, total: Tensor, top: Tensor, k: int) -> Tensor:
        return ratio(total, top).exp()
