"""Detectors of ensembles: entropy of the mean softmax, and mutual information of the members."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import MemberLogits
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.softmax import average, exact_where_faint
from oodscope.detectors.methods.entropy import Entropy


class EnsembleEntropy(Detector):
    r"""Entropy of the members' mean softmax, in nats: the total uncertainty.

    .. math:: s(x) = -\sum_c \bar p_c \log \bar p_c, \qquad \bar p = \frac1M\sum_m p^{(m)}(x)

    It rises where members are undecided and where they contradict each other.
    """

    name = "ensemble_entropy"
    paper = Paper(
        "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles",
        "Lakshminarayanan, Pritzel & Blundell",
        "NeurIPS 2017",
    )
    needs = Needs.MEMBERS
    cost = Cost.LOGITS

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (MemberLogits(),)

    def _score(self, batch: Activations) -> Tensor:
        return entropy_of_mean(batch[MemberLogits().column])


def entropy_of_mean(members: Tensor) -> Tensor:
    """Of logits ``[N, M, C]``, ``[N]`` in float64."""
    return exact_where_faint(_entropy_of_mean, members)


def _entropy_of_mean(members: Tensor) -> Tensor:
    mean, doubt = average(members)
    winner = mean.argmax(dim=1, keepdim=True)
    # the winner's term comes from what the others leave: near 1 its own logarithm has no digits
    others = precise(torch.xlogy(mean, mean).scatter_(1, winner, 0.0).sum(dim=1))
    return -(1 - doubt) * torch.log1p(-doubt) - others


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
