"""MOS: how surely some group of classes holds an image."""

from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import Output
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.models.classifier.branches import OTHERS


class MOS(Detector):
    r"""The least probability of "others" over all groups of classes: an outlier is "others" everywhere.

    .. math:: s(x) = \min_g p_g(\mathrm{others} \mid x)

    For networks trained by the recipe ``mos``, which return the logarithms, so that small ones stay distinct.
    """

    name = "mos"
    paper = Paper(
        "MOS: Towards Scaling Out-of-distribution Detection for Large Semantic Space", "Huang & Li", "CVPR 2021"
    )
    needs = Needs.OUTPUTS
    cost = Cost.LOGITS
    outputs: ClassVar[tuple[str, ...]] = (OTHERS,)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (Output(OTHERS),)

    def _score(self, batch: Activations) -> Tensor:
        return precise(batch[Output(OTHERS).column]).amin(dim=1).exp()
