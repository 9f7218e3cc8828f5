"""ConfBranch: what a network trained to know its confidence says of it."""

from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import Output
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.models.classifier.branches import CONFIDENCE


class ConfBranch(Detector):
    r"""Minus the logit of the confidence that the network returns.

    .. math:: s(x) = -\log\frac{c(x)}{1 - c(x)}

    The paper's :math:`-c` ranks the same, but ties where :math:`c` rounds to 1. For networks trained by the recipe
    ``conf_branch``.
    """

    name = "conf_branch"
    paper = Paper(
        "Learning Confidence for Out-of-Distribution Detection in Neural Networks",
        "DeVries & Taylor",
        "arXiv 1802.04865",
    )
    needs = Needs.OUTPUTS
    cost = Cost.LOGITS
    outputs: ClassVar[tuple[str, ...]] = (CONFIDENCE,)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (Output(CONFIDENCE),)

    def _score(self, batch: Activations) -> Tensor:
        return -precise(batch[Output(CONFIDENCE).column]).flatten()
