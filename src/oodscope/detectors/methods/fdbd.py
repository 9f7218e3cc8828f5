"""fDBD: distance to the decision boundaries, in units of the distance from the training mean."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise, winners
from oodscope.detectors.math.softmax import gaps


class FDBD(Detector):
    r"""Features of known images lie farther from the boundaries to the other classes.

    .. math:: s(x) = -\frac{1}{r(x)}\sum_{c\ne\hat y}
              \frac{z_{\hat y}-z_c}{\lVert w_{\hat y}-w_c\rVert}, \qquad r(x) = \lVert h-\mu\rVert

    with :math:`\mu` the mean training feature. Each summand is the distance to one boundary. The sum, as in
    OpenOOD, is the paper's mean times C - 1. Classes with equal weights have no boundary between them and are
    left out; lengths :math:`r` below 1e-12 count as 1e-12.

    Parameters
    ----------
    distance_as_normalizer : :math:`r(x)` as above, the paper's; if not, :math:`r(x)=\lVert h\rVert`.
    """

    name = "fdbd"
    paper = Paper("Fast Decision Boundary based Out-of-Distribution Detector", "Liu & Qin", "ICML 2024")
    needs = Needs.LOGITS | Needs.FEATURES | Needs.HEAD | Needs.TRAIN
    cost = Cost.MOMENTS
    grid = {"distance_as_normalizer": (True, False)}

    def __init__(self, distance_as_normalizer: bool = True) -> None:
        self.distance_as_normalizer = distance_as_normalizer

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        assert train.head is not None, "checked before fitting"
        mean = train.mean_feature(self.device).to(self.device)
        self.origin_ = precise(mean if self.distance_as_normalizer else torch.zeros_like(mean))
        weight = precise(train.head.weight.to(self.device))
        lengths = weight.square().sum(dim=1)
        both = lengths.unsqueeze(0) + lengths.unsqueeze(1)
        squared = both - 2 * (weight @ weight.T)
        # equal rows leave a rounding error, which would pass for a tiny distance
        apart = squared > 1e-12 * both
        inverse = torch.where(apart, squared.clamp(min=torch.finfo(squared.dtype).tiny).rsqrt(), 0.0)
        self.inverse_ = inverse.to(train.head.weight.dtype)

    def _score(self, batch: Activations) -> Tensor:
        # no term is negative, so float32 loses nothing in their sum
        apart = self.inverse_.index_select(0, winners(batch.logits))
        boundaries = gaps(batch.logits).mul_(apart).sum(dim=1)
        length = precise(torch.linalg.vector_norm(batch.features - self.origin_.to(batch.features), dim=1))
        return precise(boundaries) / length.clamp(min=1e-12)
