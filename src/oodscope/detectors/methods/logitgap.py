"""LogitGap: how far the largest logit stands above the next ones."""

from typing import Any

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import precise


class LogitGap(LogitScore):
    r"""Mean gap between the largest logit and the next ``top``.

    .. math:: s(x) = -\frac1N\sum_{j=2}^{N+1}\bigl(z_{(1)} - z_{(j)}\bigr), \qquad z_{(1)}\ge z_{(2)}\ge\dots

    N = 1 is the margin; N = C - 1 is :math:`-\frac{C}{C-1}(\max z - \bar z)`. A constant added to all logits changes
    nothing.

    Parameters
    ----------
    top : :math:`N`, at most C - 1; 5 as in the authors' command line. The paper chooses it from ID data by a rule that
        is not implemented; here the tracks ``id_only`` and ``ood_val`` search it.
    """

    name = "logitgap"
    paper = Paper(
        "Revisiting Logit Distributions for Reliable Out-of-Distribution Detection", "Liang et al.", "NeurIPS 2025"
    )
    grid = {"top": (1, 3, 5, 10, 20)}

    def __init__(self, top: int = 5) -> None:
        self.top = top

    def search_space(self, train: Activations) -> list[dict[str, Any]]:
        """The grid, a tenth of the classes and all of them, cut at C - 1."""
        most = max(1, train.num_classes - 1)
        values = [*self.grid["top"], train.num_classes // 10, most]
        return [{"top": top} for top in sorted({min(value, most) for value in values if value >= 1})]

    def of_logits(self, logits: Tensor) -> Tensor:
        if self.top < 1:
            raise DetectorError(f"logitgap: top must be at least 1, not {self.top}")
        largest = precise(logits.topk(min(self.top + 1, logits.shape[1]), dim=1).values)
        # two classes or more: networks with a single logit have no gap, and score 0
        others = max(1, largest.shape[1] - 1)
        return (largest - largest[:, :1]).sum(dim=1) / others
