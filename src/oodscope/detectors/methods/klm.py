"""KL-matching: divergence from the nearest class's typical softmax."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import block_rows
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import on_host, precise, winners
from oodscope.detectors.math.softmax import gaps, powers_

FLOOR = torch.finfo(torch.float32).tiny
"""The least that a template gives to any class: what no held-out image ever supported stays finite."""

CANCELLED = 0.05
"""Scores below this share of the entropy have lost digits that count."""
LEAST = 1e-10
"""Scores and differences below feel the rounding of a template's largest entry to 1."""
FEW = 100
"""Up to so many classes, a second look costs more than float64 for all."""
UNSURE = 1e-4
"""Templates whose likeness differs by less, relative to the best, are not distinguished in float32."""


class KLM(Detector):
    r"""Divergence of the softmax from the nearest template; each class has one.

    .. math:: s(x) = \min_c \sum_j p_j \log\frac{p_j}{q_{cj}}, \qquad
              q_c = \frac{1}{|V_c|}\sum_{i \in V_c} p(x_i)

    with :math:`V_c` the held-out images that are predicted as :math:`c`, whatever their label. A class that is never
    predicted has a one-hot template. Entries of templates are at least :math:`2^{-126}`. Summed is
    :math:`p\log(p/q) - p + q`: the same in all, since both sum to one, but each term is positive and nothing cancels.
    Where little would cancel, the score is :math:`-\max_c \sum_j p_j\log q_{cj} - H(p)` in float32.
    """

    name = "klm"
    paper = Paper("Scaling Out-of-Distribution Detection for Real-World Settings", "Hendrycks et al.", "ICML 2022")
    needs = Needs.LOGITS | Needs.HELD_OUT
    cost = Cost.LOGITS

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        classes = val.num_classes
        sums = precise(torch.zeros(classes, classes, device=self.device))
        for chunk in val.chunks(device=self.device, only=("logits", "prediction")):
            probabilities, _ = _softmax(precise(chunk.logits))
            sums.index_add_(0, chunk.prediction.to(self.device), probabilities)
        counts = sums.sum(dim=1, keepdim=True)
        one_hot = torch.eye(classes, dtype=sums.dtype, device=self.device)
        self.templates_ = torch.where(counts > 0, sums / counts, one_hot).clamp(min=FLOOR)
        self.log_templates_ = self.templates_.log()

    def _score(self, batch: Activations) -> Tensor:
        if len(self.templates_) <= FEW or not on_host(batch.logits):
            return self._exact(batch.logits)
        templates = self.log_templates_.to(batch.logits)
        # block by block, so that the many small steps stay in the processor's cache
        return torch.cat([self._quick(block, templates) for block in batch.logits.split(block_rows(batch.logits))])

    def _quick(self, logits: Tensor, templates: Tensor) -> Tensor:
        """In float32 wherever that is enough."""
        probabilities, logs = _softmax(logits)
        nearest = self._nearest(logits, probabilities @ templates.T)
        entropies = -precise(logs.mul_(probabilities).sum(dim=1))
        scores = -precise(templates.index_select(0, nearest).mul_(probabilities).sum(dim=1)) - entropies
        # both terms carry float32's rounding errors: a difference much smaller than they are is taken again
        lost = (scores < CANCELLED * entropies + LEAST).nonzero().flatten()
        if len(lost):
            scores[lost] = self._exact(logits.index_select(0, lost), nearest[lost])
        return scores

    def _nearest(self, logits: Tensor, likeness: Tensor) -> Tensor:
        """The template of highest ``likeness``; decided in float64 where float32 leaves a doubt."""
        nearest = winners(likeness).unsqueeze(1)
        best = likeness.gather(1, nearest)
        second = likeness.scatter_(1, nearest, -torch.inf).amax(dim=1, keepdim=True)
        doubtful = (best - second < -UNSURE * best + LEAST).flatten()
        nearest = nearest.flatten()
        if doubtful.any():
            nearest[doubtful] = (_softmax(precise(logits[doubtful]))[0] @ self.log_templates_.T).argmax(dim=1)
        return nearest

    def _exact(self, logits: Tensor, nearest: Tensor | None = None) -> Tensor:
        """In float64: the divergence from the ``nearest`` template, which is looked for if not given."""
        probabilities, logs = _softmax(precise(logits))
        if nearest is None:
            nearest = (probabilities @ self.log_templates_.T).argmax(dim=1)
        terms = logs.sub_(self.log_templates_.index_select(0, nearest)).mul_(probabilities)
        return terms.sub_(probabilities).add_(self.templates_.index_select(0, nearest)).sum(dim=1)


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and their logarithms, in the precision of the logits."""
    below = gaps(logits)
    raised, rest = powers_(below.clone())
    return raised.div_((1 + rest).to(raised).unsqueeze(1)), below.sub_(rest.log1p().to(below).unsqueeze(1))
