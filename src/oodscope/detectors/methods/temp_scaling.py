"""Temperature scaling: maximum softmax after calibration on held-out images."""

import math

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.softmax import gaps, powers_
from oodscope.detectors.methods.msp import MSP

COLDEST, HOTTEST = 0.05, 1000.0
"""Bounds of the temperature. The likelihood has no best one where every label is the largest logit (it falls
towards 0) or where logits say nothing of the labels (it rises without end)."""


class TempScaling(Detector):
    r"""One minus the largest probability of a softmax whose temperature fits held-out labels best.

    .. math:: s(x) = 1 - \max_c \mathrm{softmax}_c(z/T), \qquad
              T = \arg\min_T \sum_i -\log \mathrm{softmax}_{y_i}(z_i/T)

    The likelihood is convex in :math:`1/T`: Newton's method, kept inside a shrinking bracket, finds the optimum itself
    (a fixed number of gradient steps, as OpenOOD takes, may stop short of it). :math:`T` stays within 0.05 and 1000.
    """

    name = "temp_scaling"
    paper = Paper("On Calibration of Modern Neural Networks", "Guo et al.", "ICML 2017")
    needs = Needs.LOGITS | Needs.HELD_OUT | Needs.LABELS
    cost = Cost.LOGITS

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        low, high, inverse = 1 / HOTTEST, 1 / COLDEST, 1.0
        if self._derivatives(val, low)[0] >= 0:
            low = high = inverse = 1 / HOTTEST
        elif self._derivatives(val, high)[0] <= 0:
            low = high = inverse = 1 / COLDEST
        while high / low > 1 + 1e-9:
            slope, curvature = self._derivatives(val, inverse)
            low, high = (low, inverse) if slope > 0 else (inverse, high)
            step = inverse - slope / curvature if curvature > 0 else math.inf
            following = step if low < step < high else math.sqrt(low * high)
            moved, inverse = abs(following / inverse - 1), following
            if moved < 1e-7:
                break
        self.temperature_ = 1 / inverse

    def _derivatives(self, val: Activations, inverse: float) -> tuple[float, float]:
        """First and second, of the negative log-likelihood by the inverse temperature."""
        slope = curvature = 0.0
        for chunk in val.chunks(device=self.device, only=("logits", "labels")):
            below = gaps(chunk.logits)
            raised, rest = powers_(below * inverse)
            weighted = raised.mul_(below)
            mean = precise(weighted.sum(dim=1)) / (1 + rest)
            square = precise(weighted.mul_(below).sum(dim=1)) / (1 + rest)
            slope += float((mean - below.gather(1, chunk.labels.unsqueeze(1)).squeeze(1)).sum())
            curvature += float((square - mean.square()).sum())
        return slope, curvature

    def _score(self, batch: Activations) -> Tensor:
        # at a high temperature all classes are nearly equal, and only their last digits differ
        logits = batch.logits if self.temperature_ < 10 else precise(batch.logits)
        return MSP().of_logits(logits / self.temperature_)
