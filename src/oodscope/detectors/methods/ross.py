"""ROSS: the median score under noise, and how little it moves."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.copies import NoisyScores
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.copyscore import CopyScore
from oodscope.detectors.math.numbers import precise

STILL = 1e-9
"""A confidence that moves less than this counts as moving by this."""


class ROSS(CopyScore):
    r"""Median confidence over noisy copies; above a threshold, more of it for confidence that stays where it is.

    .. math:: s(x) = -\min(m,\tau) - \max(m-\tau,0)\,\Bigl(1+\frac{\lambda}{d}\Bigr), \qquad
              m = \mathrm{median}_i\,c(x+\sigma n_i), \quad d = \frac1n\sum_i\lvert c(x+\sigma n_i) - m\rvert

    with a logit score's confidence :math:`c=-s_0` and :math:`\tau` the 5 % quantile of m over held-out images. The
    noise of an image is a function of its content, so a score does not depend on the batch. Every image costs
    ``copies`` forward passes more.

    Parameters
    ----------
    detector : :math:`s_0`, a score of logits.
    copies : n; 25 as released.
    sigma : size of the noise in the network's normalised input; .1 as released.
    strength : :math:`\lambda`; .05 as released.
    quantile : of the held-out medians that is :math:`\tau`.
    temperature : by which logits are divided.
    seed : of the noise.
    """

    name = "ross"
    paper = Paper(
        "A Robust Out-of-Distribution Detection Framework via Synergistic Smoothing",
        "Stoica, Hekal & Lomuscio",
        "CVPR Findings 2026",
    )
    needs = Needs.COPIES | Needs.HELD_OUT
    cost = Cost.PASSES

    def __init__(
        self,
        detector: str = "msp",
        copies: int = 25,
        sigma: float = 0.1,
        strength: float = 0.05,
        quantile: float = 0.05,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.detector = detector
        self.copies = copies
        self.sigma = sigma
        self.strength = strength
        self.quantile = quantile
        self.temperature = temperature
        self.seed = seed

    @property
    def probes(self) -> tuple[Probe, ...]:
        if self.copies < 1:
            raise DetectorError(f"ross: copies must be at least 1, not {self.copies}")
        return (NoisyScores(self.wrapped, self.of_logits, self.copies, self.sigma, self.seed),)

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if not 0 <= self.quantile <= 1:
            raise DetectorError(f"ross: quantile must lie in [0, 1], not {self.quantile}")
        column = self.probes[0].column
        medians = val.per_row(lambda chunk: _median(self._confidences(chunk)), device=self.device, only=(column,))
        self.threshold_ = float(torch.quantile(medians.cpu(), self.quantile))

    def _confidences(self, batch: Activations) -> Tensor:
        return -precise(batch[self.probes[0].column])

    def _score(self, batch: Activations) -> Tensor:
        confidences = self._confidences(batch)
        middle = _median(confidences)
        deviation = (confidences - middle.unsqueeze(1)).abs().mean(dim=1).clamp(min=STILL)
        beyond = (middle - self.threshold_).clamp(min=0)
        return -middle.clamp(max=self.threshold_) - beyond * (1 + self.strength / deviation)


def _median(values: Tensor) -> Tensor:
    """Of each row; of an even number, the mean of the middle two."""
    ranked = values.sort(dim=1).values
    count = values.shape[1]
    return (ranked[:, (count - 1) // 2] + ranked[:, count // 2]) / 2
