"""Ensemble entropy: how undecided the members are together."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import MemberLogits
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.precision import precise
from oodscope.detectors.softmax import average, exact_where_faint


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
