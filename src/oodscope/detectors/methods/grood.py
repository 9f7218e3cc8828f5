"""GROOD: how an image would move an artificial OOD prototype, against how training images would."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.neighbors import nearest
from oodscope.detectors.math.numbers import precise

PROTOTYPES = ("mean", "mix", "ood_val")
SMALLEST = 1e-15
"""Gradients are compared in float32, in units of the longest of the bank, but not below this."""


class GROOD(Detector):
    r"""Squared distance to the nearest training gradient, in the OOD prototype, of a nearest-prototype classifier.

    .. math:: s(x) = \min_i \lVert g(h) - g(h_i)\rVert^2, \qquad
              g(h) = \pi_o(h)\,\frac{h-p_o}{\lVert h-p_o\rVert}, \quad
              \pi(h) = \mathrm{softmax}\bigl(-\lVert h-p\rVert\bigr)_{p\in\{\mu_1,\dots,\mu_C,p_o\}}

    over the correctly classified training images (all, where there is none), with class means :math:`\mu_c`.
    :math:`g` is the gradient in :math:`p_o` of the cross-entropy of any class. OpenOOD mixes at an inner layer and
    searches an approximate index; here mixing is of features and the search is exact.

    Parameters
    ----------
    prototype : :math:`p_o`. ``mean``: mean of the class means. ``mix``: mean over training images of the midpoint
        between the feature and the mean of the class with the second largest logit. ``ood_val``: mean of validation
        outliers, which only the tuned tracks provide; OpenOOD's default.
    """

    name = "grood"
    paper = Paper("GROOD: Gradient-Aware Out-of-Distribution Detection", "ElAraby et al.", "TMLR 2025")
    needs = Needs.LOGITS | Needs.FEATURES | Needs.TRAIN | Needs.LABELS
    cost = Cost.BANK
    grid = {"prototype": ("mean", "mix")}

    def __init__(self, prototype: str = "mean") -> None:
        self.prototype = prototype

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.prototype not in PROTOTYPES:
            raise DetectorError(f"grood: prototype must be one of {', '.join(PROTOTYPES)}, not {self.prototype!r}")
        moments = train.moments(self.device)
        means = precise(moments.means.to(self.device))
        there = (moments.counts > 0).to(self.device)
        self.outlier_ = self._outlier(train, means, there, ood_val)
        self.means_ = means[there]
        right = train.prediction.cpu() == train.labels.cpu()
        chosen = train.take(right.numpy().nonzero()[0]) if right.any() else train
        gradients = chosen.per_row(self._gradient, device=self.device, only=("features",))
        self.scale_ = max(float(torch.linalg.vector_norm(gradients, dim=1).amax()), SMALLEST)
        self.bank_ = (gradients / self.scale_).float()

    def _outlier(self, train: Activations, means: Tensor, there: Tensor, ood_val: Activations | None) -> Tensor:
        if self.prototype == "ood_val":
            if ood_val is None:
                raise DetectorError("grood: prototype=ood_val needs validation outliers: tune it, or use mean or mix")
            return precise(ood_val.mean_feature(self.device).to(self.device))
        if self.prototype == "mean":
            return means[there].mean(dim=0)
        if int(there.sum()) < 2:
            raise DetectorError("grood: prototype=mix needs training images of two classes or more")

        def mixed(chunk: Activations) -> Tensor:
            # a class without images has no mean to mix with
            ranked = chunk.logits.masked_fill(~there, -torch.inf).argsort(dim=1, descending=True, stable=True)
            return (precise(chunk.features) + means[ranked[:, 1]]) / 2

        chunks = train.chunks(device=self.device, only=("features", "logits"))
        return torch.stack([mixed(chunk).sum(dim=0) for chunk in chunks]).sum(dim=0) / len(train)

    def _gradient(self, batch: Activations) -> Tensor:
        away = precise(batch.features) - self.outlier_
        distance = torch.linalg.vector_norm(away, dim=1, keepdim=True)
        # around the prototype, far-off features do not cancel in squared distances
        means = self.means_ - self.outlier_
        squared = away.square().sum(dim=1, keepdim=True) - 2 * (away @ means.T) + means.square().sum(dim=1)
        # the root has no slope at zero
        others = squared.clamp(min=torch.finfo(squared.dtype).tiny).sqrt()
        share: Tensor = torch.softmax(-torch.cat([distance, others], dim=1), dim=1)[:, :1]
        gradient: Tensor = share * away / distance.clamp(min=torch.finfo(distance.dtype).tiny)
        return gradient

    def _score(self, batch: Activations) -> Tensor:
        gradient = self._gradient(batch) / self.scale_
        found = nearest(gradient.detach().float(), self.bank_, 1)[:, 0]
        return (gradient - self.bank_[found]).square().sum(dim=1) * self.scale_**2
