"""ASH-B, ASH-P, ASH-S: keep the largest features, at one height, as they are, or scaled up."""

import torch
from torch import Tensor

from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.rectifier import TopShare, ratio


class ASH(TopShare):
    r"""Most features can go and the class stays: the largest k share the sum of all of them, the rest is zero.

    .. math:: s(x) = -\log\sum_c e^{z_c}, \qquad z = W\tilde h + b, \qquad
              \tilde h_i = \begin{cases}\frac1k\sum_j h_j & h_i \text{ among the } k \text{ largest}\\
              0 & \text{else}\end{cases}

    This is ASH-B, the form that OpenOOD runs; ``ash_p`` and ``ash_s`` are the other two. It is applied to the
    pooled features, as OpenOOD does. Equal features: the earlier ones are kept.

    Parameters
    ----------
    percentile : share of the features that go, :math:`k = D - \mathrm{round}(D\,p/100)`, one at least; 90 is
        OpenOOD's default.
    logit_score : what judges the new logits; the energy unless given.
    """

    name = "ash"
    paper = Paper(
        "Extremely Simple Activation Shaping for Out-of-Distribution Detection", "Djurisic et al.", "ICLR 2023"
    )

    def __init__(self, percentile: float = 90, logit_score: LogitScore | None = None) -> None:
        self.percentile = percentile
        self.logit_score = logit_score

    def _shape(self, features: Tensor, keep: Tensor) -> Tensor:
        return keep

    def _factor(self, total: Tensor, top: Tensor, k: int) -> Tensor:
        return total / k


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
