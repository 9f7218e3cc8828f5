"""KL-matching: divergence from the nearest class's typical softmax."""

import torch
from torch import Tensor

from oodscope.activations import Activations
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.precision import precise
from oodscope.detectors.softmax import gaps, powers_

FLOOR = torch.finfo(torch.float32).tiny
"""The least that a template gives to any class: what no held-out image ever supported stays finite."""


class KLM(Detector):
    r"""Divergence of the softmax from the nearest template; each class has one.

    .. math:: s(x) = \min_c \sum_j p_j \log\frac{p_j}{q_{cj}}, \qquad
              q_c = \frac{1}{|V_c|}\sum_{i \in V_c} p(x_i)

    with :math:`V_c` the held-out images that are predicted as :math:`c`, whatever their label. A class that is never
    predicted has a one-hot template. Entries of templates are at least :math:`2^{-126}`. Summed is
    :math:`p\log(p/q) - p + q`: the same in all, since both sum to one, but each term is positive and nothing cancels.
    """

    name = "klm"
    paper = Paper("Scaling Out-of-Distribution Detection for Real-World Settings", "Hendrycks et al.", "ICML 2022")
    needs = Needs.LOGITS | Needs.HELD_OUT
    cost = Cost.LOGITS

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        classes = val.num_classes
        sums = precise(torch.zeros(classes, classes, device=self.device))
        for chunk in val.chunks(device=self.device, only=("logits", "prediction")):
            probabilities, _ = _softmax(chunk.logits)
            sums.index_add_(0, chunk.prediction.to(self.device), probabilities)
        counts = sums.sum(dim=1, keepdim=True)
        one_hot = torch.eye(classes, dtype=sums.dtype, device=self.device)
        self.templates_ = torch.where(counts > 0, sums / counts, one_hot).clamp(min=FLOOR)
        self.log_templates_ = self.templates_.log()

    def _score(self, batch: Activations) -> Tensor:
        probabilities, logs = _softmax(batch.logits)
        nearest = (probabilities @ self.log_templates_.T).argmax(dim=1)
        terms = logs.sub_(self.log_templates_[nearest]).mul_(probabilities)
        return terms.sub_(probabilities).add_(self.templates_[nearest]).sum(dim=1)


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and their logarithms, in float64."""
    below = gaps(precise(logits))
    raised, rest = powers_(below.clone())
    return raised.div_((1 + rest).unsqueeze(1)), below.sub_(rest.log1p().unsqueeze(1))
