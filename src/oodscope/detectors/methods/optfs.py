"""OptFS: weigh each range of feature values by what it adds to the predicted class on known images."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Needs
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import precise, winners
from oodscope.detectors.math.quantiles import percentiles
from oodscope.detectors.rectifier import Rectifier


class OptFS(Rectifier):
    r"""The shaping of features that raises the predicted logit of known images most, one factor per value range.

    .. math:: s(x) = -\sum_i w_{\hat y i}\,\theta(h_i)\,h_i, \qquad
              \theta_k = 1000\,\frac{I_k}{\lVert I\rVert}, \quad
              I_k = \frac1N\sum_{n}\sum_{i:h_{ni}\in B_k} w_{\hat y_n i}\,h_{ni}

    The ranges :math:`B_k` cut the values between the 0.1 and 99.9 percentile of all training features into equal
    parts; values outside are dropped. The norm of :math:`\theta`, as in the authors' code, matters only to a
    ``logit_score``.

    Parameters
    ----------
    intervals : how many ranges; 100 in the authors' code.
    logit_score : what judges :math:`W(\theta(h)\,h)+b`; unless given, the score above, which needs no other class.
    """

    name = "optfs"
    paper = Paper(
        "Towards Optimal Feature-Shaping Methods for Out-of-Distribution Detection", "Zhao et al.", "ICLR 2024"
    )
    needs = Rectifier.needs | Needs.LOGITS | Needs.TRAIN

    def __init__(self, intervals: int = 100, logit_score: LogitScore | None = None) -> None:
        self.intervals = intervals
        self.logit_score = logit_score

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        assert train.head is not None, "checked before fitting"
        if self.intervals < 1:
            raise DetectorError(f"optfs: intervals must be at least 1, not {self.intervals}")
        low, high = percentiles(train, "features", (0.1, 99.9), self.device)
        if not low < high:
            raise DetectorError("optfs: all training features are equal, so there are no ranges to weigh")
        self.low_, self.width_ = low, (high - low) / self.intervals
        weight = train.head.weight.to(self.device)
        # one more range on either side for the values outside
        gain = precise(torch.zeros(self.intervals + 2, device=self.device))
        for chunk in train.chunks(device=self.device, only=("features", "logits")):
            added = precise(weight[winners(chunk.logits)] * chunk.features)
            gain += torch.bincount(self._range(chunk.features).flatten(), added.flatten(), self.intervals + 2)
        gain[0] = gain[-1] = 0
        length = torch.linalg.vector_norm(gain)
        self.theta_ = 1000 * gain / length if length > 0 else gain

    def _range(self, features: Tensor) -> Tensor:
        """Number of each value's range, from 1 on; 0 and the last stand for values below and above all."""
        return ((precise(features) - self.low_) / self.width_).floor().clamp(-1, self.intervals).long() + 1

    def _rectify(self, features: Tensor) -> Tensor:
        return precise(features) * self.theta_[self._range(features)]

    def _score(self, batch: Activations) -> Tensor:
        if self.logit_score is not None:
            return super()._score(batch)
        assert batch.head is not None, "checked before scoring"
        weight = precise(batch.head.weight.to(self.device))
        return -(self._rectify(batch.features) * weight[winners(batch.logits)]).sum(dim=1)
