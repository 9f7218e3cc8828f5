"""Mutual information: how much the members of an ensemble contradict each other."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import MemberLogits
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.ensemble_entropy import entropy_of_mean
from oodscope.detectors.entropy import Entropy


class MutualInformation(Detector):
    r"""Entropy of the mean softmax minus the mean entropy of the members', in nats.

    .. math:: s(x) = H\Bigl(\frac1M\sum_m p^{(m)}\Bigr) - \frac1M\sum_m H\bigl(p^{(m)}\bigr) \ge 0

    The part of the uncertainty that comes from not knowing the right network: 0 where members agree, however undecided
    they are, and :math:`\log M` where each is certain of another class.
    """

    name = "mutual_information"
    paper = Paper("Understanding Measures of Uncertainty for Adversarial Example Detection", "Smith & Gal", "UAI 2018")
    needs = Needs.MEMBERS
    cost = Cost.LOGITS

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (MemberLogits(),)

    def _score(self, batch: Activations) -> Tensor:
        members = batch[MemberLogits().column]
        return (entropy_of_mean(members) - Entropy().of_logits(members).mean(dim=1)).clamp(min=0)
