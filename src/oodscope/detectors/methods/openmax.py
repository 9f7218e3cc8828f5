"""OpenMax: probability of the class that is not among the known ones."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise

STEEPEST = 1e6
"""Largest shape: equal values ask for an infinite one, and this is a step already."""


def fit_weibull(values: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    r"""Shape :math:`k` and scale :math:`\lambda` of :math:`F(v) = 1 - e^{-(v/\lambda)^k}` for each row of values > 0.

    .. math:: \frac{\sum_i v_i^k \log v_i}{\sum_i v_i^k} - \frac1k = \frac1n\sum_i \log v_i, \qquad
              \lambda^k = \frac1n\sum_i v_i^k

    The left side of the first equation rises with :math:`k`: Newton's method, held to a factor of two per step, finds
    the root from anywhere. Only ``present`` values count; rows without any get a harmless 1 and 1.
    """
    weights = present.to(values.dtype)
    count = weights.sum(dim=1, keepdim=True).clamp(min=1)
    logs = values.log()
    mean = (logs * weights).sum(dim=1, keepdim=True) / count
    # around the mean logarithm, so that steep tails do not overflow
    centred = (logs - mean) * weights
    spread = (centred.square().sum(dim=1, keepdim=True) / count).sqrt()
    shape = (math.pi / math.sqrt(6) / spread).clamp(max=STEEPEST)
    for _ in range(100):
        share = torch.softmax((shape * centred).masked_fill(~present, -torch.inf), dim=1).nan_to_num(0.0)
        first = (share * centred).sum(dim=1, keepdim=True)
        second = (share * centred.square()).sum(dim=1, keepdim=True) - first.square()
        step = shape - (first - 1 / shape) / (second + shape.pow(-2))
        following = torch.clamp(step, shape / 2, shape * 2).clamp(max=STEEPEST)
        moved = (following / shape - 1).abs().amax()
        shape = following
        if moved < 1e-12:
            break
    log_scale = mean + ((shape * centred).masked_fill(~present, -torch.inf).logsumexp(1, True) - count.log()) / shape
    empty = ~present.any(dim=1)
    return shape.squeeze(1).masked_fill(empty, 1.0), log_scale.exp().squeeze(1).masked_fill(empty, 1.0)


class OpenMax(Detector):
    r"""Logits lose what extreme-value theory says of their distance from the class; what they lose is the unknown's.

    .. math:: s(x) = \frac{e^{u}}{e^{u} + \sum_c e^{z'_c}}, \qquad
              z'_c = z_c\,(1-\omega_c), \quad u = \sum_c z_c\,\omega_c

    .. math:: \omega_{c} = \frac{\alpha - i}{\alpha}\, F_c\bigl(\lVert z - \mu_c \rVert\bigr)

    for the class of rank :math:`i = 0 .. \alpha-1` among the largest logits, and 0 for all others. :math:`\mu_c` is the
    mean logit vector of the training images of class :math:`c` that are classified correctly, :math:`F_c` the Weibull
    distribution fitted by maximum likelihood to their ``tail`` largest distances from it. As libmr does, the
    distribution starts one unit below the smallest of these.

    A class without correct images is never recalibrated; one with fewer than ``tail`` is fitted to those it has.

    Parameters
    ----------
    tail : how many distances make the tail; 20 as in the paper and OpenOOD.
    alpha : how many of the largest logits are recalibrated; 3 as in OpenOOD. All, where there are fewer classes.
    """

    name = "openmax"
    paper = Paper("Towards Open Set Deep Networks", "Bendale & Boult", "CVPR 2016")
    needs = Needs.LOGITS | Needs.TRAIN | Needs.LABELS
    cost = Cost.LOGITS

    def __init__(self, tail: int = 20, alpha: int = 3) -> None:
        self.tail = tail
        self.alpha = alpha

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.tail < 2:
            raise DetectorError(f"openmax: tail must be at least 2, not {self.tail}")
        if self.alpha < 1:
            raise DetectorError(f"openmax: alpha must be at least 1, not {self.alpha}")
        classes = train.num_classes
        sums = precise(torch.zeros(classes, classes, device=self.device))
        counts = sums.new_zeros(classes)
        for logits, owners in self._correct(train):
            sums.index_add_(0, owners, logits)
            counts += torch.bincount(owners, minlength=classes)
        if not counts.any():
            raise DetectorError("openmax: no training image is classified correctly; check labels and logits")
        self.means_ = sums / counts.clamp(min=1).unsqueeze(1)
        tails = sums.new_full((classes, self.tail), -torch.inf)
        for logits, owners in self._correct(train):
            distances = torch.linalg.vector_norm(logits - self.means_[owners], dim=1)
            both = torch.cat([tails, _largest(distances, owners, classes, self.tail)], dim=1)
            tails = both.topk(self.tail, dim=1).values
        present = tails > -torch.inf
        smallest = tails.masked_fill(~present, torch.inf).amin(dim=1, keepdim=True)
        # a class without images starts at infinity: no distance reaches it
        self.start_ = smallest.squeeze(1) - 1
        self.shape_, self.scale_ = fit_weibull((tails - smallest + 1).masked_fill(~present, 1.0), present)

    def _correct(self, train: Activations) -> Iterator[tuple[Tensor, Tensor]]:
        for chunk in train.chunks(device=self.device, only=("logits", "labels", "prediction")):
            right = chunk.prediction.to(self.device) == chunk.labels
            yield precise(chunk.logits[right]), chunk.labels[right]

    def _score(self, batch: Activations) -> Tensor:
        logits = precise(batch.logits)
        alpha = min(self.alpha, logits.shape[1])
        largest, owners = logits.topk(alpha, dim=1)
        changed, unknown = logits.clone(), logits.new_zeros(logits.shape[0])
        for rank in range(alpha):
            owner = owners[:, rank]
            distance = torch.linalg.vector_norm(logits - self.means_[owner], dim=1)
            beyond = (distance - self.start_[owner]).clamp(min=0) / self.scale_[owner]
            outside = -torch.expm1(-beyond.pow(self.shape_[owner]))
            lost = largest[:, rank] * outside * ((alpha - rank) / alpha)
            changed.scatter_add_(1, owner.unsqueeze(1), -lost.unsqueeze(1))
            unknown += lost
        return torch.sigmoid(unknown - changed.logsumexp(dim=1))


def _largest(values: Tensor, owners: Tensor, classes: int, count: int) -> Tensor:
    """The ``count`` largest values of each owner, ``[classes, count]``, filled up with minus infinity."""
    by_value = values.argsort(descending=True)
    order = by_value[owners[by_value].argsort(stable=True)]
    starts = torch.bincount(owners, minlength=classes).cumsum(0).roll(1)
    starts[0] = 0
    rank = torch.arange(len(values), device=values.device) - starts[owners[order]]
    kept = rank < count
    table = values.new_full((classes, count), -torch.inf)
    table[owners[order][kept], rank[kept]] = values[order][kept]
    return table
