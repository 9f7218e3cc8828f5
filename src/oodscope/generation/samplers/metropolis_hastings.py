"""Metropolis-Hastings: the paper's search."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.generation.samplers.base import Sampler, State, check_boundary, check_positive, take
from oodscope.generation.search.target import Target
from oodscope.generation.variations.domain import Boundary

WANTED = 0.234
"""The share of accepted moves that is best in many dimensions (Roberts et al. 1997)."""
SMALLEST, LARGEST = 1e-5, 2.0
"""Between these an adapted step stays: twice the width of the cube is already anywhere."""


@dataclass
class Walk(State):
    """Chains with a step of their own, as the natural logarithm."""

    log_step: Tensor


@dataclass(frozen=True)
class MetropolisHastings(Sampler):
    r"""Gaussian proposals, accepted by the law :math:`p(z) \propto e^{-E(g(z))/T}`.

    .. math:: y = z + \sigma\xi, \qquad \text{accept iff } u \le e^{-(E(g(y)) - E(g(z)))/T}

    Parameters
    ----------
    step : :math:`\sigma`; the paper uses .1. On a sphere that is not small: in 64 dimensions it turns a point by 38
        degrees on average.
    temperature : :math:`T`.
    boundary : how a step ends that leaves the unit cube: ``reflect`` samples the law, ``clamp`` is the paper's code.
    adapt : steps of warm-up in which each chain fits its step to an acceptance of .234 (Robbins-Monro). Afterwards
        the step is fixed and the chain a valid one. 0 keeps ``step`` as it is.
    by_dimension : divide ``step`` by the square root of the dimension.
    """

    name = "mh"

    step: float = 0.1
    temperature: float = 1.0
    boundary: Boundary = "reflect"
    adapt: int = 0
    by_dimension: bool = False

    def __post_init__(self) -> None:
        check_positive(self.name, step=self.step, temperature=self.temperature)
        check_boundary(self.boundary)
        if self.adapt < 0:
            raise OodscopeError(f"{self.name}: adapt is a number of warm-up steps, not {self.adapt}")

    def begin(self, target: Target, start: Tensor) -> Walk:
        plain = super().begin(target, start)
        first = self.step / math.sqrt(target.domain.dimension) if self.by_dimension else self.step
        log_step = torch.full((len(start),), math.log(first), dtype=start.dtype, device=start.device)
        return Walk(plain.points, plain.energy, plain.accepted, log_step)

    def move(self, target: Target, state: Walk, number: int) -> None:
        noise = target.noise.normal(*state.points.shape)
        proposal = target.domain.move(state.points, noise * state.log_step.exp().unsqueeze(1), self.boundary)
        energy = target.visit(proposal)
        log_chance = (state.energy - energy) / self.temperature
        if number < self.adapt:
            state.log_step = _adapted(state.log_step, log_chance, number)
        take(state, target.noise.uniform(len(proposal)).log() <= log_chance, proposal, energy)


def _adapted(log_step: Tensor, log_chance: Tensor, number: int) -> Tensor:
    r""":math:`\log\sigma \leftarrow \log\sigma + (t+1)^{-.6}(\min(1, e^{-\Delta E/T}) - .234)`."""
    # a proposal whose energy is NaN is refused, so it counts as a chance of zero
    chance = log_chance.clamp(max=0).exp().nan_to_num(0).to(log_step)
    rate = math.pow(number + 1, -0.6)
    moved = log_step + rate * (chance - WANTED)
    return moved.clamp(math.log(SMALLEST), math.log(LARGEST))
