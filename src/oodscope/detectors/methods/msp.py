"""MSP: one minus the largest softmax probability."""

from torch import Tensor

from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.softmax import exact_where_faint, gaps, powers_


class MSP(LogitScore):
    r"""The probability that the softmax gives to all classes but the predicted one.

    .. math:: s(x) = 1 - \max_c p_c(x) = \frac{r}{1+r}, \qquad r = \sum_{c\ne\hat y} e^{z_c - z_{\hat y}}

    The second form does not cancel: confident images keep distinct scores instead of tying at 0.
    """

    name = "msp"
    paper = Paper(
        "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural Networks",
        "Hendrycks & Gimpel",
        "ICLR 2017",
    )

    def of_logits(self, logits: Tensor) -> Tensor:
        return exact_where_faint(_doubt, logits)


def _doubt(logits: Tensor) -> Tensor:
    _, rest = powers_(gaps(logits))
    return rest / (1 + rest)
