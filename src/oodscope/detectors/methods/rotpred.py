"""RotPred: how far a prediction is from uniform, and how well the network recognises quarter turns."""

import math
from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.turns import TurnLosses
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.models.classifier.branches import ROTATION


class RotPred(Detector):
    r"""The mean loss over four quarter turns, minus the divergence of the prediction from uniform, in nats.

    .. math:: s(x) = \frac14 \sum_{k=0}^3 \mathrm{CE}(r(T_k x), k) - \mathrm{KL}(u \Vert p(x)), \qquad
              \mathrm{KL}(u \Vert p) = -\log C - \frac1C \sum_c \log p_c

    Outliers are turned less recognisably. For networks trained by the recipe ``rotpred``. OpenOOD takes both terms in
    bits, which ranks the same.
    """

    name = "rotpred"
    paper = Paper(
        "Using Self-Supervised Learning Can Improve Model Robustness and Uncertainty",
        "Hendrycks et al.",
        "NeurIPS 2019",
    )
    needs = Needs.LOGITS | Needs.OUTPUTS
    cost = Cost.PASSES
    outputs: ClassVar[tuple[str, ...]] = (ROTATION,)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (TurnLosses(),)

    def _score(self, batch: Activations) -> Tensor:
        logs = precise(batch.logits).log_softmax(dim=1)
        from_uniform = -math.log(logs.shape[1]) - logs.mean(dim=1)
        return precise(batch[TurnLosses().column]).mean(dim=1) - from_uniform
