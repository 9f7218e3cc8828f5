"""Langevin: Metropolis-Hastings whose proposals lean downhill."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.detectors.math.numbers import precise
from oodscope.generation.samplers.base import Sampler, check_positive, count_from_zero, take
from oodscope.generation.samplers.projected_gradient import Slope
from oodscope.generation.search.target import Target
from oodscope.generation.variations.domain import Box

MIRRORS = (-2, -1, 0, 1, 2)
"""A mean lies between -1 and 2, so images of a point further than these are many steps away."""


@dataclass(frozen=True)
class Langevin(Sampler):
    r"""The Metropolis-adjusted Langevin algorithm in the unit cube, reflected at its walls.

    .. math:: y = \mathrm{reflect}(m(z) + \sigma\xi), \quad m(z) = z - d(z), \quad
              d(z) = \mathrm{clip}\Big(\frac{\sigma^2}{2T}\nabla E(g(z)), -1, 1\Big)

    A proposal reaches :math:`y` from :math:`z` directly or over a wall, so its density is a sum over mirror images,

    .. math:: q(y\,|\,z) = \prod_d \sum_k \big[\phi_\sigma(2k + y_d - m_d) + \phi_\sigma(2k - y_d - m_d)\big]

    and :math:`y` is accepted with probability :math:`\min(1, e^{-(E(y)-E(z))/T}\, q(z\,|\,y) / q(y\,|\,z))`: the law is
    that of ``mh``, whatever the step.

    Parameters
    ----------
    step : :math:`\sigma`, at most 1/2.
    temperature : :math:`T`.
    """

    name = "langevin"
    gradient = True

    step: float = 0.1
    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.name, step=self.step, temperature=self.temperature)
        if self.step > 0.5:
            raise OodscopeError(f"{self.name}: step must be at most 0.5, half the width of the cube, not {self.step}")

    def begin(self, target: Target, start: Tensor) -> Slope:
        if not isinstance(target.domain, Box):
            raise OodscopeError(f"{self.name}: moves within a box; use mh on a sphere")
        energy, gradient = target.visit_with_gradient(start)
        return Slope(start, energy, count_from_zero(start), gradient)

    def move(self, target: Target, state: Slope, number: int) -> None:
        mean = self._mean(state.points, state.gradient)
        noise = target.noise.normal(*state.points.shape)
        proposal = target.domain.move(mean, self.step * noise, "reflect")
        energy, gradient = target.visit_with_gradient(proposal)
        back = self._log_density(state.points, self._mean(proposal, gradient))
        log_chance = (state.energy - energy) / self.temperature + back - self._log_density(proposal, mean)
        accept = target.noise.uniform(len(proposal)).log() <= log_chance
        take(state, accept, proposal, energy)
        state.gradient = torch.where(accept.unsqueeze(1), gradient, state.gradient)

    def _mean(self, points: Tensor, gradient: Tensor) -> Tensor:
        return points - (self.step**2 / (2 * self.temperature) * gradient).clamp(-1, 1)

    def _log_density(self, points: Tensor, mean: Tensor) -> Tensor:
        """Of proposals with these means at these points, up to a constant."""
        images = torch.stack([2 * k + sign * points for k in MIRRORS for sign in (1, -1)])
        exponents = precise(images - mean).square() / (-2 * math.pow(self.step, 2))
        return exponents.logsumexp(dim=0).sum(dim=1)
