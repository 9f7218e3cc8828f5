"""GMM: how unlikely a feature is under a mixture of Gaussians."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.bank import picked_rows, remembered
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.principal import eigenbasis

ROWS = 4096
"""Rows whose responsibilities are held at once."""


class Mixture(NamedTuple):
    """Weights ``[K]``, means ``[K, D]`` and the covariance ``[D, D]`` that all components share."""

    weights: Tensor
    means: Tensor
    covariance: Tensor

    def log_densities(self, points: Tensor) -> Tensor:
        r""":math:`\log w_k\,\mathcal N(x;\mu_k,\Sigma)`, one row per point, one column per component."""
        factor = torch.linalg.cholesky(self.covariance)
        whitened = torch.linalg.solve_triangular(factor, points.T, upper=False).T
        means = torch.linalg.solve_triangular(factor, self.means.T, upper=False).T
        squares = whitened.square().sum(dim=1, keepdim=True) + means.square().sum(dim=1) - 2 * (whitened @ means.T)
        volume = points.shape[1] * math.log(2 * math.pi) + 2 * factor.diagonal().log().sum()
        densities: Tensor = self.weights.log() - (squares + volume) / 2
        return densities


def fit_mixture(start: Mixture, points: Tensor, *, floor: float, tol: float, max_iter: int) -> Mixture:
    """Climb the likelihood from ``start`` until a step gains less than ``tol`` per point.

    ``floor`` is added to every variance, so that no component can shrink to a point.
    """
    mixture, before = start, -torch.inf
    scatter = points.T @ points
    for _ in range(max_iter):
        masses, sums, likelihood = _expect(mixture, points)
        mixture = from_sums(masses, sums, scatter, floor)
        if abs(likelihood - before) < tol:
            break
        before = likelihood
    return mixture


def from_sums(masses: Tensor, sums: Tensor, scatter: Tensor, floor: float) -> Mixture:
    """The likeliest mixture, given how many points belong to each component and their sums."""
    means = sums / masses.unsqueeze(1)
    covariance = (scatter - means.T @ sums) / masses.sum()
    covariance.diagonal().add_(floor)
    return Mixture(masses / masses.sum(), means, covariance)


def starting_sums(points: Tensor, components: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Masses and sums of the points around k-means++ seeds: each new seed far from those before.

    The draws are made on the CPU, so that the device does not change them.
    """
    near = torch.full((len(points),), torch.inf, dtype=points.dtype, device=points.device)
    owner = torch.zeros(len(points), dtype=torch.int64, device=points.device)
    chances = torch.ones(len(points), dtype=torch.float64)
    for index in range(components):
        seed = int(torch.multinomial(chances, 1, generator=generator))
        distance = (points - points[seed]).square().sum(dim=1)
        owner[distance < near] = index
        near = torch.minimum(near, distance)
        # where all points lie on seeds, any one will do
        chances = near.cpu() if bool(near.sum() > 0) else torch.ones_like(chances)
    return _tally(torch.nn.functional.one_hot(owner, components).to(points), points)


def _expect(mixture: Mixture, points: Tensor) -> tuple[Tensor, Tensor, float]:
    masses, sums = mixture.weights.new_zeros(()), mixture.weights.new_zeros(())
    likelihood = 0.0
    for part in torch.split(points, ROWS):
        joint = mixture.log_densities(part)
        total = joint.logsumexp(dim=1, keepdim=True)
        mass, summed = _tally((joint - total).exp(), part)
        masses, sums, likelihood = masses + mass, sums + summed, likelihood + float(total.sum())
    return masses, sums, likelihood / len(points)


def _tally(responsibilities: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    # a component that nobody belongs to must not divide by zero
    masses = responsibilities.sum(dim=0) + 10 * torch.finfo(points.dtype).eps
    return masses, responsibilities.T @ points


class GMM(Detector):
    r"""Negative log-density of the feature's principal components under a Gaussian mixture; labels are not used.

    .. math:: s(x) = -\log\sum_{k=1}^K w_k\,\mathcal N(P^\top(h-\mu);\, m_k, \Sigma)

    :math:`P` holds the first ``dim`` principal axes of the training features, all components share the covariance
    :math:`\Sigma`. OpenOOD's defaults for the last layer are kept; its other two layers have weight 0 there.

    The mixture is fitted by expectation-maximisation from k-means++ seeds, until a step raises the mean
    log-density by less than ``tol`` or ``max_iter`` steps are done. A millionth of the mean variance is added to
    every variance.

    Parameters
    ----------
    components : :math:`K`; at most one per training image is used.
    dim : principal components kept; no more than there are directions in which features vary.
    rows : how many training images the mixture is fitted to, at most; the axes come from all of them.
    seed : which images, and which of them are seeds.
    """

    name = "gmm"
    paper = Paper("Full-Spectrum Out-of-Distribution Detection", "Yang, Zhou & Liu", "arXiv 2204.05306")
    needs = Needs.FEATURES | Needs.TRAIN
    cost = Cost.TRAINING

    def __init__(
        self,
        components: int = 50,
        dim: int = 50,
        rows: int = 50_000,
        tol: float = 1e-3,
        max_iter: int = 100,
        seed: int = 0,
    ) -> None:
        self.components = components
        self.dim = dim
        self.rows = rows
        self.tol = tol
        self.max_iter = max_iter
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        for key in ("components", "dim", "rows", "max_iter"):
            if getattr(self, key) < 1:
                raise DetectorError(f"gmm: {key} must be at least 1, not {getattr(self, key)}")
        moments = train.moments(self.device)
        variances, axes = moments.derived("covariance", lambda: eigenbasis(moments.covariance))
        varying = int((variances > variances.max() * len(variances) * torch.finfo(torch.float64).eps).sum())
        if varying == 0:
            raise DetectorError("gmm: all training features are equal, there is no density to fit")
        dim = min(self.dim, varying)
        self.origin_ = precise(moments.mean.to(self.device))
        self.axes_ = precise(axes[:, :dim].to(self.device))
        chosen = picked_rows(self.name, train, min(1.0, self.rows / len(train)), self.seed)
        points = remembered(train, "features", chosen, self.device, self._project)
        floor = 1e-6 * float(variances[:dim].mean())
        generator = torch.Generator().manual_seed(self.seed)
        masses, sums = starting_sums(points, min(self.components, len(points)), generator)
        start = from_sums(masses, sums, points.T @ points, floor)
        mixture = fit_mixture(start, points, floor=floor, tol=self.tol, max_iter=self.max_iter)
        self.weights_, self.means_, self.covariance_ = mixture

    def _score(self, batch: Activations) -> Tensor:
        mixture = Mixture(self.weights_, self.means_, self.covariance_)
        return -mixture.log_densities(self._project(batch.features)).logsumexp(dim=1)

    def _project(self, features: Tensor) -> Tensor:
        return (precise(features) - self.origin_) @ self.axes_
