"""MLS: the largest logit, negated."""

from torch import Tensor

from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore


class MLS(LogitScore):
    r"""Small when some class is strongly supported, however many others are.

    .. math:: s(x) = -\max_c z_c(x)
    """

    name = "mls"
    paper = Paper("Scaling Out-of-Distribution Detection for Real-World Settings", "Hendrycks et al.", "ICML 2022")

    def of_logits(self, logits: Tensor) -> Tensor:
        return -logits.amax(dim=1)
