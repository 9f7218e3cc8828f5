"""MCD: how much two heads of one network disagree."""

from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import Output
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.models.classifier.branches import SECOND


class MCD(Detector):
    r"""The distance of two predictions, between 0 and 2.

    .. math:: s(x) = \sum_c \lvert p^1_c(x) - p^2_c(x)\rvert

    For networks trained by the recipe ``mcd``.
    """

    name = "mcd"
    paper = Paper(
        "Unsupervised Out-of-Distribution Detection by Maximum Classifier Discrepancy", "Yu & Aizawa", "ICCV 2019"
    )
    needs = Needs.LOGITS | Needs.OUTPUTS
    cost = Cost.LOGITS
    outputs: ClassVar[tuple[str, ...]] = (SECOND,)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (Output(SECOND),)

    def _score(self, batch: Activations) -> Tensor:
        first, second = precise(batch.logits).softmax(dim=1), precise(batch[Output(SECOND).column]).softmax(dim=1)
        return (first - second).abs().sum(dim=1)
