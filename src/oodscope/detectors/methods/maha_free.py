"""Label-free Mahalanobis distance: one Gaussian around all training features."""

from collections.abc import Iterator

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import gather_moments
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.neighbors import radial
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.principal import whitening

ENOUGH = 10
"""Training images per feature from which on the covariance is taken as it is."""


class MahaFree(Detector):
    r"""Squared Mahalanobis distance to the mean of all training images: no labels, no head, an embedding is enough.

    .. math:: s(x) = (\varphi-m)^\top\Sigma^{+}(\varphi-m), \qquad \varphi = h/\lVert h\rVert^\beta

    with mean :math:`m` and covariance :math:`\Sigma` of the training images' :math:`\varphi`. With fewer than 10
    images per feature the covariance is shrunk as Ledoit and Wolf (2004) do. A feature of zeros stays zero.

    The paper was known by its abstract when this was written.

    Parameters
    ----------
    beta : 0 leaves the lengths of features, 1 makes them equal.
    """

    name = "maha_free"
    paper = Paper(
        "Scaling Pretrained Representations Enables Label-Free Out-of-Distribution Detection Without Fine-Tuning",
        "Barkley, Culbertson & Fridovich-Keil",
        "arXiv 2605.05638",
    )
    needs = Needs.FEATURES | Needs.TRAIN
    cost = Cost.MOMENTS
    unverified_form = True
    grid = {"beta": (0.0, 0.5, 1.0, 1.5)}

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        def rows(chunk: Activations) -> Tensor:
            return radial(precise(chunk.features), self.beta)

        def parts() -> Iterator[Tensor]:
            return (rows(chunk) for chunk in train.chunks(device=self.device, only=("features",)))

        moments = gather_moments(((part, None) for part in parts()), 1)
        covariance = moments.covariance
        if moments.total < ENOUGH * len(covariance):
            mean = precise(moments.mean.to(self.device))
            fourth = sum(float((part - mean).square().sum(dim=1).square().sum()) for part in parts())
            covariance = shrunk(covariance, moments.total, fourth)
        self.origin_ = precise(moments.mean.to(self.device))
        self.whiten_ = precise(whitening(covariance).to(self.device))

    def _score(self, batch: Activations) -> Tensor:
        return ((radial(precise(batch.features), self.beta) - self.origin_) @ self.whiten_).square().sum(dim=1)


def shrunk(covariance: Tensor, count: int, fourth: float) -> Tensor:
    r"""The covariance, drawn towards a multiple of the identity by Ledoit and Wolf's share.

    Parameters
    ----------
    covariance : of ``count`` rows around their mean, or around those of their classes.
    fourth : :math:`\sum_i\lVert h_i-\mu\rVert^4`, the one statistic that moments lack.
    """
    size = len(covariance)
    round_one = torch.eye(size, dtype=covariance.dtype) * covariance.trace() / size
    from_round = (covariance - round_one).square().sum()
    noise = (fourth / count - covariance.square().sum()) / count
    share = (noise / from_round).clamp(0, 1) if from_round > 0 else torch.ones(())
    return (1 - share) * covariance + share * round_one
