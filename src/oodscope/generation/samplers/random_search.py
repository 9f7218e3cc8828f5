"""Random search: independent draws, the baseline that any search must beat."""

from dataclasses import dataclass

import torch

from oodscope.generation.samplers.base import Sampler, State, take
from oodscope.generation.search.target import Target


@dataclass(frozen=True)
class RandomSearch(Sampler):
    """Each step is a fresh uniform draw from the whole domain."""

    name = "random"

    def move(self, target: Target, state: State, number: int) -> None:
        points = target.domain.draw(target.chains, target.noise.generator)
        energy = target.visit(points)
        take(state, torch.ones_like(state.accepted, dtype=torch.bool), points, energy)
