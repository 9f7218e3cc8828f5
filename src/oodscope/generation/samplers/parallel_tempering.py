"""Parallel tempering: hot replicas cross barriers and hand what they find to the cold one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.generation.samplers.base import Sampler, State, check_boundary, check_positive, count_from_zero, take
from oodscope.generation.search.target import Target
from oodscope.generation.variations.domain import Boundary


@dataclass
class Ladder(State):
    """Replicas of all chains, the coldest first: row ``k * chains + i`` is chain i at temperature k."""

    temperatures: Tensor
    steps: Tensor


@dataclass(frozen=True)
class ParallelTempering(Sampler):
    r"""Metropolis-Hastings at several temperatures at once (Earl and Deem 2005).

    Each chain has K replicas at :math:`T_k = T\,r^k`. Every few steps neighbours may swap their states:

    .. math:: P = \min\big(1, e^{(1/T_k - 1/T_{k+1})(E_k - E_{k+1})}\big)

    which leaves each temperature its law. A step costs K evaluations, and so it is counted.

    Parameters
    ----------
    step : of the coldest replica, as for ``mh``; that at temperature k goes :math:`\sqrt{T_k/T}` times as far, at
        most to 1/2.
    temperature : :math:`T` of the coldest.
    replicas : K.
    ratio : r, between neighbouring temperatures.
    swap_every : steps between swaps, in turn of the even and of the odd pairs.
    boundary : as for ``mh``.
    """

    name = "tempering"

    step: float = 0.1
    temperature: float = 1.0
    replicas: int = 4
    ratio: float = 3.0
    swap_every: int = 10
    boundary: Boundary = "reflect"

    def __post_init__(self) -> None:
        check_positive(self.name, step=self.step, temperature=self.temperature, swap_every=self.swap_every)
        check_boundary(self.boundary)
        if self.replicas < 2 or not self.ratio > 1:
            raise OodscopeError(f"{self.name}: needs 2 replicas or more and a ratio above 1 between temperatures")

    @property
    def evaluations(self) -> int:
        return self.replicas

    def begin(self, target: Target, start: Tensor) -> Ladder:
        points = start.repeat(self.replicas, 1)
        energy = target.visit(points)
        level = torch.arange(self.replicas, device=start.device).repeat_interleave(len(start))
        heat = torch.pow(torch.tensor(self.ratio, device=start.device), level)
        steps = (self.step * heat.sqrt()).clamp(max=max(self.step, 0.5)).unsqueeze(1)
        return Ladder(points, energy, count_from_zero(points), self.temperature * heat, steps)

    def move(self, target: Target, state: Ladder, number: int) -> None:
        noise = target.noise.normal(*state.points.shape)
        proposal = target.domain.move(state.points, noise * state.steps, self.boundary)
        energy = target.visit(proposal)
        log_chance = (state.energy - energy) / state.temperatures
        take(state, target.noise.uniform(len(proposal)).log() <= log_chance, proposal, energy)
        if (number + 1) % self.swap_every == 0:
            self._swap(target, state, odd=(number + 1) // self.swap_every % 2 == 0)

    def _swap(self, target: Target, state: Ladder, odd: bool) -> None:
        """Neighbours (0, 1), (2, 3), ... or (1, 2), (3, 4), ... of each chain exchange their states, or not."""
        chains, first = target.chains, 1 if odd else 0
        pairs = (self.replicas - first) // 2
        points = state.points.view(self.replicas, chains, -1)
        energy = state.energy.view(self.replicas, chains)
        rate = 1 / state.temperatures.view(self.replicas, chains)
        colder, hotter = slice(first, first + 2 * pairs, 2), slice(first + 1, first + 2 * pairs, 2)
        log_chance = (rate[colder] - rate[hotter]) * (energy[colder] - energy[hotter])
        swap = target.noise.uniform(pairs, chains).log() <= log_chance
        # each place takes the state of the row at ``origin``: its own, or its neighbour's
        origin = torch.arange(self.replicas, device=swap.device).unsqueeze(1).repeat(1, chains)
        origin[colder] += swap
        origin[hotter] -= swap.long()
        column = torch.arange(chains, device=swap.device)
        state.points = points[origin, column].reshape(state.points.shape)
        state.energy = energy[origin, column].reshape(state.energy.shape)
