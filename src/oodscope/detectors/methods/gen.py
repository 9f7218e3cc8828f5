"""GEN: generalised entropy of the largest softmax probabilities."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import on_host, precise
from oodscope.detectors.math.softmax import FAINT, gaps, powers_


class GEN(LogitScore):
    r"""An entropy that small deviations from a one-hot prediction already raise.

    .. math:: s(x) = \sum_{c \in \mathrm{top}_M} p_c^\gamma\,(1-p_c)^\gamma

    over the :math:`M` most probable classes. Computed from logarithms: neither :math:`1-p` of a confident image nor
    :math:`p^{0.01}` of a hopeless class may round to 0.

    Parameters
    ----------
    gamma : the smaller, the more do tiny probabilities count; the paper's 0.1 is the default.
    top : :math:`M`; the paper takes a tenth of ImageNet's classes, 100. All classes where there are fewer.
    """

    name = "gen"
    paper = Paper(
        "GEN: Pushing the Limits of Softmax-Based Out-of-Distribution Detection", "Liu, Lochman & Zach", "CVPR 2023"
    )
    grid = {"gamma": (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0), "top": (10, 50, 100, 200, 500, 1000)}

    def __init__(self, gamma: float = 0.1, top: int = 100) -> None:
        self.gamma = gamma
        self.top = top

    def of_logits(self, logits: Tensor) -> Tensor:
        if self.gamma <= 0:
            raise DetectorError(f"gen: gamma must be positive, not {self.gamma}")
        if self.top < 1:
            raise DetectorError(f"gen: top must be at least 1, not {self.top}")
        products = _log_products(logits, self.top, ordered=self.top < logits.shape[1])
        return products.mul_(self.gamma).exp_().sum(dim=1)

    def search_space(self, train: Activations) -> list[dict[str, Any]]:
        """Each number of classes once: above C they all mean C."""
        points = super().search_space(train)
        distinct = {(point["gamma"], min(point["top"], train.num_classes)): point for point in reversed(points)}
        return [point for point in points if point in distinct.values()]

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """One sort for all candidates, and one power for each gamma."""
        wanted = [(float(point.get("gamma", self.gamma)), int(point.get("top", self.top))) for point in candidates]
        most = max(top for _, top in wanted)

        def all_scores(chunk: Activations) -> Tensor:
            products = _log_products(chunk.logits, most)
            raised = {gamma: (products * gamma).exp_() for gamma, _ in wanted}
            return torch.stack([precise(raised[gamma][:, :top].sum(dim=1)) for gamma, top in wanted], dim=1)

        columns = [part.per_row(all_scores, device=self.device, only=("logits",)) for part in judged]
        for position in range(len(wanted)):
            yield [scores[:, position] for scores in columns]


def _log_products(logits: Tensor, top: int, *, ordered: bool = True) -> Tensor:
    r""":math:`\log p_c(1-p_c)` of the ``top`` most probable classes, the most probable first.

    ``ordered=False``: of all classes, as they come.
    """
    below = gaps(logits if on_host(logits) else precise(logits))
    _, rest = powers_(below.clone())
    if on_host(logits):
        # the logarithm of a tiny rest counts in full
        faint = rest < FAINT
        rest[faint] = powers_(precise(below[faint]))[1]
    total = rest.log1p().unsqueeze(1)
    best = (below.topk(min(top, below.shape[1]), dim=1).values if ordered else below).sub_(total.to(below.dtype))
    others = (-best.exp()).log1p_()
    where = torch.zeros_like(total, dtype=torch.int64) if ordered else best.argmax(dim=1, keepdim=True)
    winner = (rest.log().unsqueeze(1) - total).to(best.dtype)
    return best.add_(others.scatter_(1, where, winner))
