r"""Domain: where the parameters of a variation live, and how a step within it ends."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Boundary = Literal["reflect", "clamp"]
"""What happens to a step that leaves a box. ``reflect`` mirrors it back, which keeps proposals symmetric, so that
Metropolis-Hastings samples the law it claims. ``clamp`` stops at the wall, as the code of the paper does: chains then
stick to the walls (1-D, E = 3z: mean .2398 where the law has .2809), which an optimiser may even like."""


class Domain(ABC):
    """A set of parameter vectors of ``dimension`` numbers."""

    dimension: int

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """``[count, dimension]`` points, uniform over the domain, on the generator's device."""

    @abstractmethod
    def move(self, points: Tensor, steps: Tensor, boundary: Boundary = "reflect") -> Tensor:
        """``points + steps``, brought back into the domain."""


@dataclass(frozen=True)
class Box(Domain):
    """The unit cube: every coordinate in [0, 1]; a variation maps it to its own units."""

    dimension: int

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.rand(count, self.dimension, generator=generator, device=generator.device)

    def move(self, points: Tensor, steps: Tensor, boundary: Boundary = "reflect") -> Tensor:
        moved = points + steps
        if boundary == "clamp":
            return moved.clamp(0, 1)
        # mirrors at 0 and at 1, however far the step went
        return 1 - (1 - moved.remainder(2)).abs()


@dataclass(frozen=True)
class Sphere(Domain):
    r"""The unit sphere :math:`S^{D-1}`.

    A step is taken in the surrounding space and normalised. Its density depends only on the angle between start and
    end, so it is symmetric and Metropolis-Hastings needs no correction.
    """

    dimension: int

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        normal = torch.randn(count, self.dimension, generator=generator, device=generator.device)
        return torch.nn.functional.normalize(normal, dim=1)

    def move(self, points: Tensor, steps: Tensor, boundary: Boundary = "reflect") -> Tensor:
        return torch.nn.functional.normalize(points + steps, dim=1)


@dataclass(frozen=True)
class Product(Domain):
    """Points of several domains side by side, such as a latent on a sphere and a class in [0, 1)."""

    parts: tuple[Domain, ...]

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return sum(part.dimension for part in self.parts)

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.cat([part.draw(count, generator) for part in self.parts], dim=1)

    def move(self, points: Tensor, steps: Tensor, boundary: Boundary = "reflect") -> Tensor:
        sizes = [part.dimension for part in self.parts]
        split = zip(self.parts, torch.split(points, sizes, dim=1), torch.split(steps, sizes, dim=1))
        return torch.cat([part.move(own, step, boundary) for part, own, step in split], dim=1)
