"""GradNorm: size of the gradient that pulls the softmax towards uniform."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.softmax import gaps, powers_


class GradNorm(Detector):
    r"""Negated L1 norm of the gradient, by the head's weight, of the cross-entropy with all classes as targets.

    .. math:: s(x) = -\Bigl\lVert \frac{\partial}{\partial W} \sum_c -\log p_c \Bigr\rVert_1
                   = -\lVert h \rVert_1 \sum_c \lvert C p_c - 1 \rvert

    The gradient by :math:`W` is the outer product of :math:`C p - 1` and :math:`h`, so no backward pass is needed.
    The paper divides by :math:`C` (a divergence from the uniform distribution), OpenOOD and this class do not.
    """

    name = "gradnorm"
    paper = Paper(
        "On the Importance of Gradients for Detecting Distributional Shifts in the Wild",
        "Huang, Geng & Li",
        "NeurIPS 2021",
    )
    needs = Needs.LOGITS | Needs.FEATURES
    cost = Cost.HEAD

    def _score(self, batch: Activations) -> Tensor:
        raised, rest = powers_(gaps(batch.logits))
        scaled = raised.mul_((batch.num_classes / (1 + rest)).to(raised).unsqueeze(1))
        return -precise(batch.features.abs().sum(dim=1)) * precise(scaled.sub_(1).abs_().sum(dim=1))
