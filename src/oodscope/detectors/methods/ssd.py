"""SSD: Mahalanobis distance of unit features from one Gaussian of all training images."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.neighbors import unit
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.principal import eigenbasis

_CUT = 1e-6
"""Directions with less than this share of the largest variance are left out."""


class SSD(Detector):
    r"""Squared Mahalanobis distance from the mean of all training features of length one; labels are not used.

    .. math:: s(x) = (\hat h-\mu)^\top\Sigma^{+}(\hat h-\mu), \qquad \hat h = h/\lVert h\rVert

    The paper's table says k-means, its code has one cluster. Directions with less than a millionth of the largest
    variance are left out.

    Parameters
    ----------
    parity : centre twice, as the evaluation of EvG does: features are standardised by mean and deviation, and the mean
        of the features before that is subtracted once more.
    """

    name = "ssd"
    paper = Paper(
        "SSD: A Unified Framework for Self-Supervised Outlier Detection", "Sehwag, Chiang & Mittal", "ICLR 2021"
    )
    needs = Needs.FEATURES | Needs.TRAIN
    cost = Cost.MOMENTS

    def __init__(self, parity: bool = False) -> None:
        self.parity = parity

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        moments = train.moments(self.device, normalised=True)
        variances, axes = moments.derived("covariance", lambda: eigenbasis(moments.covariance))
        kept = variances > _CUT * variances.max()
        self.origin_ = precise(moments.mean.to(self.device))
        self.whiten_ = precise((axes[:, kept] / variances[kept].sqrt()).to(self.device))
        # of standardised features the distance is the same, so that the second centring is a shift by mean x deviation
        deviation = moments.covariance.diagonal().clamp(min=0).sqrt()
        self.shift_ = precise(
            (moments.mean * deviation if self.parity else torch.zeros_like(deviation)).to(self.device)
        )

    def _score(self, batch: Activations) -> Tensor:
        centred = unit(precise(batch.features)) - self.origin_ - self.shift_
        return (centred @ self.whiten_).square().sum(dim=1)
