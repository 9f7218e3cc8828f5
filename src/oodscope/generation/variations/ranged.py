"""Ranged: a variation whose coordinates are numbers that a person can name, each from a low to a high value."""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from oodscope.generation.domains import Box
from oodscope.generation.variations.base import Variation


class Range(NamedTuple):
    """One coordinate: what it is called, with its unit, and the values at 0 and at 1."""

    name: str
    low: float
    high: float


class Ranged(Variation):
    """A variation with named coordinates: the unit box, stretched linearly to ``ranges``."""

    @property
    @abstractmethod
    def ranges(self) -> tuple[Range, ...]:
        """One per coordinate."""

    @property
    def domain(self) -> Box:
        return Box(len(self.ranges))

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.ranges)

    def natural(self, points: Tensor) -> Tensor:
        # numbers of Python, because a table of bounds would be copied to the device at every step, which waits for it
        columns = zip(points.unbind(1), self.ranges, strict=True)
        return torch.stack([each.low + (each.high - each.low) * column for column, each in columns], dim=1)
