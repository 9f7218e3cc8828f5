"""ASH-P: keep the largest features as they are."""

import torch
from torch import Tensor

from oodscope.detectors.ash import ASH
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.topshare import TopShare


class ASHP(TopShare):
    r"""Most features can go and the class stays: the largest k remain, the rest is zero.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\tilde h + b, \qquad
              \tilde h_i = \begin{cases}h_i & h_i \text{ among the } k \text{ largest}\\0 & \text{else}\end{cases}

    The plain baseline of ``ash`` and ``ash_s``. Equal features: the earlier ones are kept.

    Parameters
    ----------
    percentile : share of the features that go, :math:`k = D - \mathrm{round}(D\,p/100)`, one at least; 90 as
        for ``ash``.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "ash_p"
    paper = ASH.paper

    def __init__(self, percentile: float = 90, logit_score: LogitScore | None = None) -> None:
        self.percentile = percentile
        self.logit_score = logit_score

    def _factor(self, total: Tensor, top: Tensor, k: int) -> Tensor:
        return torch.ones_like(total)
