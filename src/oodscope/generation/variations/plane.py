"""Plane: a variation of which only two coordinates move, so that its scores can be drawn as a map."""

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.domain import Box


class Plane(Variation):
    """Two coordinates of another variation; the others stay where they leave the image as it is.

    Parameters
    ----------
    whole : a variation of an image in a box, with an identity and named coordinates.
    first, second : the numbers of both coordinates.
    """

    def __init__(self, whole: Variation, first: int, second: int) -> None:
        if whole.identity is None or len(whole.parameters) != whole.domain.dimension:
            raise OodscopeError(f"{whole.name} has no plane to look at: its coordinates have no names, or no identity")
        self.whole, self.chosen = whole, (first, second)
        self.name = f"{whole.name}[{whole.parameters[first]}, {whole.parameters[second]}]"
        self.differentiable = whole.differentiable
        self._rest = whole.identity

    @property
    def domain(self) -> Box:
        return Box(2)

    @property
    def identity(self) -> tuple[float, float]:
        first, second = self.chosen
        return self._rest[first], self._rest[second]

    @property
    def parameters(self) -> tuple[str, str]:
        first, second = self.chosen
        return self.whole.parameters[first], self.whole.parameters[second]

    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        return self.whole(self.lifted(points), images)

    def lifted(self, points: Tensor) -> Tensor:
        """``[N, 2]`` points of the plane as ``[N, D]`` points of the whole variation."""
        columns = [points.new_full((len(points),), value) for value in self._rest]
        for place, column in zip(self.chosen, points.unbind(1)):
            columns[place] = column
        return torch.stack(columns, dim=1)

    def natural(self, points: Tensor) -> Tensor:
        return self.whole.natural(self.lifted(points))[:, list(self.chosen)]

    def to(self, device: torch.device | str) -> "Plane":
        return Plane(self.whole.to(device), *self.chosen)

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "whole": self.whole.describe(), "coordinates": list(self.parameters)}
