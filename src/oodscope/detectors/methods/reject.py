"""Reject: what a network with an output for "none of the classes" says of it."""

from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import Output
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.models.classifier.branches import REJECT


class Reject(Detector):
    r"""The log-odds of the class beyond the last, of a network trained with :math:`K + 1` outputs.

    .. math:: s(x) = z_{K+1} - \log \sum_{c=1}^K e^{z_c}

    The papers take the probability :math:`\sigma(s)`, which ranks the same but ties where it rounds to 0 or 1. The
    network returns ``reject`` beside its ``logits``; ``with_branches(model, {"reject": 1})`` adds the output.
    """

    name = "reject"
    paper = Paper(
        "ATOM: Robustifying Out-of-distribution Detection Using Outlier Mining", "Chen et al.", "ECML PKDD 2021"
    )
    needs = Needs.LOGITS | Needs.OUTPUTS
    cost = Cost.LOGITS
    outputs: ClassVar[tuple[str, ...]] = (REJECT,)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (Output(REJECT),)

    def _score(self, batch: Activations) -> Tensor:
        return precise(batch[Output(REJECT).column]).flatten() - precise(batch.logits).logsumexp(dim=1)
