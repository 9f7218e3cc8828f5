"""Coordinate descent: the local optimiser that the paper compares with."""

from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.generation.samplers.base import Sampler, State, check_positive, take
from oodscope.generation.search.target import Target


@dataclass
class Descent(State):
    """Chains with a step of their own, and whether this sweep has moved them yet."""

    step: Tensor
    moved: Tensor


@dataclass(frozen=True)
class CoordinateDescent(Sampler):
    """One coordinate at a time, up and down, and only ever downhill: it ends in the nearest minimum.

    A sweep tries ``+step`` and ``-step`` along every coordinate and takes what lowers the energy. A chain that no try
    of a sweep has moved halves its step.

    Parameters
    ----------
    step : the first one.
    """

    name = "coordinate"

    step: float = 0.1

    def __post_init__(self) -> None:
        check_positive(self.name, step=self.step)

    def begin(self, target: Target, start: Tensor) -> Descent:
        plain = super().begin(target, start)
        still = torch.zeros(len(start), dtype=torch.bool, device=start.device)
        return Descent(plain.points, plain.energy, plain.accepted, torch.full_like(start[:, 0], self.step), still)

    def move(self, target: Target, state: Descent, number: int) -> None:
        place = number % (2 * target.domain.dimension)
        jump = torch.zeros_like(state.points)
        jump[:, place // 2] = state.step if place % 2 == 0 else -state.step
        proposal = target.domain.move(state.points, jump, "clamp")
        energy = target.visit(proposal)
        lower = energy < state.energy
        take(state, lower, proposal, energy)
        state.moved = state.moved | lower
        if place + 1 == 2 * target.domain.dimension:
            state.step = torch.where(state.moved, state.step, state.step / 2)
            state.moved = torch.zeros_like(state.moved)
