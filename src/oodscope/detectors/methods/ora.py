"""ORA: under which angles the training mean sees an image and the nearest points of its decision boundaries."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise, winners

REDUCTIONS = ("max", "mean")


class ORA(Detector):
    r"""Known images lie at large angles from their foot points on the decision boundaries, seen from the mean feature.

    .. math:: s(x) = -\frac1\pi\max_{c\ne\hat y}\theta_c, \qquad
              \cos\theta_c = \frac{r^2 - d_c u_c}{r\sqrt{r^2 - 2d_cu_c + d_c^2}}, \quad
              d_c = \frac{z_{\hat y}-z_c}{\lVert w_{\hat y}-w_c\rVert}, \quad
              u_c = \frac{(h-\mu)^\top(w_{\hat y}-w_c)}{\lVert w_{\hat y}-w_c\rVert}

    with :math:`r=\lVert h-\mu\rVert` and :math:`\mu` the mean of the class means: :math:`\theta_c` is the angle at
    :math:`\mu` between :math:`h` and its foot point :math:`g_c` on the boundary to class c. By the law of sines,
    ``fdbd`` is the mean of :math:`\sin\theta_c` over the sine of the angle at :math:`g_c`. Classes with equal weights
    have no boundary between them and are left out; an image at the mean has the angle 0.

    Parameters
    ----------
    reduce : ``max`` is the published form; ``mean`` over the boundaries is ours.
    """

    name = "ora"
    paper = Paper("Out-of-Distribution Detection with Relative Angles", "Demirel, Fumero & Locatello", "NeurIPS 2025")
    needs = Needs.LOGITS | Needs.FEATURES | Needs.HEAD | Needs.TRAIN | Needs.LABELS
    cost = Cost.MOMENTS
    grid = {"reduce": REDUCTIONS}

    def __init__(self, reduce: str = "max") -> None:
        self.reduce = reduce

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        assert train.head is not None, "checked before fitting"
        if self.reduce not in REDUCTIONS:
            raise DetectorError(f"ora: reduce must be one of {', '.join(REDUCTIONS)}, not {self.reduce!r}")
        moments = train.moments(self.device)
        self.origin_ = precise(moments.means[moments.counts > 0].mean(dim=0).to(self.device))
        self.weight_ = precise(train.head.weight.to(self.device))
        lengths = self.weight_.square().sum(dim=1)
        both = lengths.unsqueeze(0) + lengths.unsqueeze(1)
        squared = both - 2 * (self.weight_ @ self.weight_.T)
        # equal rows leave a rounding error, which would pass for a tiny distance
        apart = squared > 1e-12 * both
        self.inverse_ = torch.where(apart, squared.clamp(min=torch.finfo(squared.dtype).tiny).rsqrt(), 0.0)

    def _score(self, batch: Activations) -> Tensor:
        predicted = winners(batch.logits)
        inverse = self.inverse_.index_select(0, predicted)
        centred, logits = precise(batch.features) - self.origin_, precise(batch.logits)
        towards = centred @ self.weight_.T
        at = predicted.unsqueeze(1)
        distance = (logits.gather(1, at) - logits) * inverse
        along = (towards.gather(1, at) - towards) * inverse
        squared = centred.square().sum(dim=1, keepdim=True)
        # by the tangent: the arc cosine of nearly 1 has half of the digits
        across = distance * (squared - along.square()).clamp(min=0).sqrt()
        angle = torch.atan2(across, squared - distance * along)
        if self.reduce == "max":
            return -angle.amax(dim=1) / torch.pi
        return -angle.sum(dim=1) / (inverse > 0).sum(dim=1).clamp(min=1) / torch.pi
