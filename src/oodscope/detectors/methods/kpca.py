"""KPCA: what kernel principal components cannot reconstruct of a feature's direction."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import gather_moments
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.estimator import clone
from oodscope.detectors.math.bank import picked_rows, remembered
from oodscope.detectors.math.neighbors import unit
from oodscope.detectors.math.numbers import column_by_column, precise
from oodscope.detectors.math.principal import eigenbasis

PIECE = 1024
"""Images that are mapped at once."""


class KPCA(Detector):
    r"""Reconstruction error under a cosine-Gaussian kernel, whose feature map is drawn at random.

    .. math:: s(x) = \lVert (I - UU^\top)(\Phi(x)-\bar\Phi) \rVert, \qquad
              \Phi(x) = \sqrt{2/M}\,\cos(\Omega\,h/\lVert h\rVert + u), \quad
              \Omega_{ij}\sim\mathcal N(0, 2\gamma), \; u_i\sim\mathcal U(0, 2\pi)

    :math:`U` holds the principal axes of the mapped training features. This is the paper's CoRP, with its values
    for CIFAR-10 but for half as many random features.

    Parameters
    ----------
    explained : share of the variance that the principal axes hold; 0.8 for CIFAR-10, 0.5 for ImageNet.
    gamma : of the kernel :math:`e^{-\gamma\lVert a-b\rVert^2}`; 2 for CIFAR-10, 3 for ImageNet.
    width : :math:`M`, the number of random features; the authors take 2048 for CIFAR-10, 4096 for ImageNet.
    rows : how many training images the axes are found from, at most.
    seed : which images, and which random features.
    """

    name = "kpca"
    paper = Paper("Kernel PCA for Out-of-Distribution Detection", "Fang et al.", "NeurIPS 2024")
    needs = Needs.FEATURES | Needs.TRAIN
    cost = Cost.TRAINING
    grid = {"explained": (0.5, 0.7, 0.8, 0.9)}

    def __init__(
        self, explained: float = 0.8, gamma: float = 2.0, width: int = 1024, rows: int = 20_000, seed: int = 0
    ) -> None:
        self.explained = explained
        self.gamma = gamma
        self.width = width
        self.rows = rows
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        self.axes_ = self._learn(train, [self.explained])[0]

    def _learn(self, train: Activations, shares: Sequence[float]) -> list[Tensor]:
        """Draw the map, and find the axes that hold each of the ``shares``."""
        self._check_parameters(shares)
        generator = torch.Generator().manual_seed(self.seed)
        weight = torch.randn(train.features.shape[1], self.width, generator=generator, dtype=torch.float64)
        phase = torch.rand(self.width, generator=generator, dtype=torch.float64)
        self.weight_ = precise((math.sqrt(2 * self.gamma) * weight).to(self.device))
        self.phase_ = precise((2 * math.pi * phase).to(self.device))
        chosen = picked_rows(self.name, train, min(1.0, self.rows / len(train)), self.seed)
        rows = remembered(train, "features", chosen, self.device, lambda features: features)
        moments = gather_moments(((self._map(part), None) for part in torch.split(rows, PIECE)), 0)
        self.centre_ = precise(moments.mean.to(self.device))
        variances, axes = eigenbasis(moments.covariance)
        held = variances.clamp(min=0).cumsum(0)
        counts = [1 + int((held < share * held[-1]).sum()) for share in shares]
        return [precise(axes[:, :count].to(self.device)) for count in counts]

    def _check_parameters(self, shares: Sequence[float]) -> None:
        for share in shares:
            if not 0 < share < 1:
                raise DetectorError(f"kpca: explained must lie in (0, 1), not {share}")
        for key in ("gamma", "width", "rows"):
            if getattr(self, key) <= 0:
                raise DetectorError(f"kpca: {key} must be positive, not {getattr(self, key)}")

    def _map(self, features: Tensor) -> Tensor:
        return math.sqrt(2 / self.width) * torch.cos(unit(precise(features)) @ self.weight_ + self.phase_)

    def _score(self, batch: Activations) -> Tensor:
        return self._errors(batch, [self.axes_])[:, 0]

    def _errors(self, batch: Activations, bases: Sequence[Tensor]) -> Tensor:
        """For each basis, and each begins with the smaller ones, what it leaves of the mapped features."""
        mapped = self._map(batch.features) - self.centre_
        whole = mapped.square().sum(dim=1)
        inside = (mapped @ max(bases, key=lambda axes: axes.shape[1])).square()
        left = [(whole - inside[:, : axes.shape[1]].sum(dim=1)).clamp(min=0).sqrt() for axes in bases]
        return torch.stack(left, dim=1)

    def score_grid(
        self,
        candidates: Sequence[Mapping[str, Any]],
        train: Activations,
        val: Activations,
        judged: Sequence[Activations],
    ) -> Iterator[list[Tensor]]:
        """All shares from one projection."""
        trial = clone(self).to(self.device)
        trial._check(train, fitting=True)
        bases = trial._learn(train, [float(candidate["explained"]) for candidate in candidates])
        yield from column_by_column(judged, lambda chunk: trial._errors(chunk, bases), self.device)
