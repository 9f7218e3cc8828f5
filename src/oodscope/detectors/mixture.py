"""Gaussian mixtures of one common shape, by expectation-maximisation."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

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
