"""G-ODIN: how much the best class speaks for an image that moved towards it."""

from typing import ClassVar, Literal

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.stepped import SteppedNumerators
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.msp import MSP
from oodscope.models.classifier.branches import NUMERATORS


class GODIN(Detector):
    r"""Minus the largest class-conditional numerator of the perturbed image.

    .. math:: s(x) = -\max_c h_c(x')

    with :math:`x'` of ``SteppedNumerators``. For networks trained by the recipe ``godin``. OpenOOD's published row
    takes :math:`1 - \max_c \mathrm{softmax}_c(h(x'))`, which ranks differently, because it mixes in the other classes.

    Parameters
    ----------
    epsilon : length of the step, in pixels of [0, 1]. The paper chooses it on ID data, OpenOOD fixes .0025.
    form : ``max`` as in the paper, or ``softmax`` as in OpenOOD.
    """

    name = "godin"
    paper = Paper(
        "Generalized ODIN: Detecting Out-of-distribution Image without Learning from Out-of-distribution Data",
        "Hsu et al.",
        "CVPR 2020",
    )
    needs = Needs.GRADIENTS | Needs.OUTPUTS
    cost = Cost.PASSES
    outputs: ClassVar[tuple[str, ...]] = (NUMERATORS,)
    grid = {"epsilon": (0.0, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)}

    def __init__(self, epsilon: float = 0.0025, form: Literal["max", "softmax"] = "max") -> None:
        self.epsilon = epsilon
        self.form = form

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (SteppedNumerators(self.epsilon),)

    def _score(self, batch: Activations) -> Tensor:
        numerators = precise(batch[self.probes[0].column])
        return MSP().of_logits(numerators) if self.form == "softmax" else -numerators.amax(dim=1)
