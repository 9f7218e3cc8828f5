"""A sampler: draws that are pushed towards the corners of the domain."""

from dataclasses import dataclass

import torch

from oodscope.generation.samplers.base import Sampler, take


@dataclass(frozen=True)
class Corners(Sampler):
    """Each step is a draw, every coordinate raised to a power."""

    name = "corners"
    power: float = 2.0

    def move(self, target, state, number):
        points = target.domain.draw(target.chains, target.noise.generator) ** self.power
        take(state, torch.ones_like(state.accepted, dtype=torch.bool), points, target.visit(points))
