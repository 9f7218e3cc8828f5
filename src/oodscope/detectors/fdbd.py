"""fDBD: distance to the decision boundaries, in units of the distance from the training mean."""

import torch
from torch import Tensor

from oodscope.activations import Activations
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.precision import precise


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
        self.inverse_ = torch.where(apart, squared.clamp(min=torch.finfo(squared.dtype).tiny).rsqrt(), 0.0)

    def _score(self, batch: Activations) -> Tensor:
        logits = precise(batch.logits)
        top, prediction = logits.max(dim=1, keepdim=True)
        boundaries = ((top - logits) * self.inverse_[prediction.squeeze(1)]).sum(dim=1)
        length: Tensor = torch.linalg.vector_norm(precise(batch.features) - self.origin_, dim=1)
        return -boundaries / length.clamp(min=1e-12)
