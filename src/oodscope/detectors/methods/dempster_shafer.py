"""Dempster-Shafer: how little evidence the logits of a distance-aware network hold."""

import math
from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import Output
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.models.classifier.branches import VARIANCE


class DempsterShafer(Detector):
    r"""Log-odds of the uncertainty :math:`u = K/(K + \sum_c e^{z_c})` of mean-field logits.

    .. math:: s(x) = \log K - \log\sum_c e^{z_c}, \qquad u = \sigma(s)

    For networks trained by the recipe ``sngp``, whose logits shrink with the distance from the training images:
    :math:`z = \bar z/\sqrt{1 + \lambda v(x)}` with the variance :math:`v` that they return beside them. The paper's
    :math:`u` ranks the same, but ties where it rounds to 0.
    """

    name = "dempster_shafer"
    paper = Paper(
        "Simple and Principled Uncertainty Estimation with Deterministic Deep Learning via Distance Awareness",
        "Liu et al.",
        "NeurIPS 2020",
    )
    needs = Needs.LOGITS | Needs.OUTPUTS
    cost = Cost.LOGITS
    log_probabilities_ok = False
    outputs: ClassVar[tuple[str, ...]] = (VARIANCE,)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (Output(VARIANCE),)

    def _score(self, batch: Activations) -> Tensor:
        return math.log(batch.logits.shape[1]) - precise(batch.logits).logsumexp(dim=1)
