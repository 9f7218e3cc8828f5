"""ASH-S: keep the largest features and scale them up by what was lost."""

from torch import Tensor

from oodscope.detectors.ash import ASH
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.topshare import TopShare, ratio


class ASHS(TopShare):
    r"""Most features can go and the class stays: the largest k grow with what the others took along.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\tilde h + b, \qquad
              \tilde h_i = \begin{cases}h_i\,e^{s_1/s_2} & h_i \text{ among the } k \text{ largest}\\
              0 & \text{else}\end{cases}

    with :math:`s_1` the sum of all features and :math:`s_2` of the k largest. An image without any positive
    feature counts as :math:`s_1/s_2 = 1`. Equal features: the earlier ones are kept.

    Parameters
    ----------
    percentile : share of the features that go, :math:`k = D - \mathrm{round}(D\,p/100)`, one at least; 90 as
        for ``ash``.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "ash_s"
    paper = ASH.paper

    def __init__(self, percentile: float = 90, logit_score: LogitScore | None = None) -> None:
        self.percentile = percentile
        self.logit_score = logit_score

    def _factor(self, total: Tensor, top: Tensor, k: int) -> Tensor:
        return ratio(total, top).exp()
