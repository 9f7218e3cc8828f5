"""Entropy: how undecided the softmax is."""

from torch import Tensor

from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.softmax import exact_where_faint, gaps, powers_


class Entropy(LogitScore):
    r"""Shannon entropy of the softmax, in nats: 0 for a certain prediction, :math:`\log C` for none.

    .. math:: s(x) = -\sum_c p_c \log p_c = \log(1+r) - \frac{1}{1+r}\sum_c g_c e^{g_c}, \qquad
              g_c = z_c - \max_j z_j, \quad r = \sum_{c\ne\hat y} e^{g_c}

    In the second form every term is positive, so nothing cancels for confident images.
    """

    name = "entropy"
    paper = Paper(
        "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural Networks",
        "Hendrycks & Gimpel",
        "ICLR 2017",
    )

    def of_logits(self, logits: Tensor) -> Tensor:
        return exact_where_faint(_entropy, logits)


def _entropy(logits: Tensor) -> Tensor:
    below = gaps(logits)
    raised, rest = powers_(below.clone())
    return rest.log1p() - precise(raised.mul_(below).sum(dim=-1)) / (1 + rest)
