"""ASH-B: keep the largest features, all at one height."""

from torch import Tensor

from oodscope.detectors.base import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.topshare import TopShare


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
