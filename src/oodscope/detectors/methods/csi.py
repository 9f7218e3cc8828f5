"""CSI: the prediction of class and turn together, averaged over four quarter turns."""

from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.turns import JointLogits
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.msp import MSP
from oodscope.models.classifier.branches import JOINT


class CSI(Detector):
    r"""One minus the largest softmax probability of the joint logits, averaged over turns.

    .. math:: s(x) = 1 - \max_c \mathrm{softmax}_c(\ell(x)), \qquad
              \ell_c(x) = \frac14\sum_{k=0}^3 j_{kC+c}(T_k x)

    The paper's score where classes are labelled; OpenOOD's published row is ``msp`` of the class head. For networks
    trained by the recipes ``csi`` and ``csi_heads``.
    """

    name = "csi"
    paper = Paper(
        "CSI: Novelty Detection via Contrastive Learning on Distributionally Shifted Instances",
        "Tack et al.",
        "NeurIPS 2020",
    )
    needs = Needs.OUTPUTS
    cost = Cost.PASSES
    outputs: ClassVar[tuple[str, ...]] = (JOINT,)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (JointLogits(),)

    def _score(self, batch: Activations) -> Tensor:
        return MSP().of_logits(precise(batch[JointLogits().column]))
