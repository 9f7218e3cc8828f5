"""Composition: one variation after another."""

from collections.abc import Sequence

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.domain import Box


class Composition(Variation):
    r"""Several variations of one image, one after the other: :math:`g(z; x) = g_2(z_2; g_1(z_1; x))`.

    The parameters lie side by side, those of the first to act first. The name reads as mathematics does:
    ``affine+color`` is affine ∘ color, made by ``Composition((Color(), Affine()))``. In that order the black that comes
    in from outside stays black, and does not count to the mean that contrast pulls to.

    Parameters
    ----------
    parts : in the order in which they act. Each varies an image and lives in a box.
    """

    def __init__(self, parts: Sequence[Variation]) -> None:
        self.parts = tuple(parts)
        if not self.parts:
            raise OodscopeError("a composition needs at least one variation")
        for part in self.parts:
            if not (part.conditional and isinstance(part.domain, Box)):
                raise OodscopeError(
                    f"{part.name} cannot be part of a composition: only variations of an image in a box"
                )
        self.name = "+".join(part.name for part in reversed(self.parts))
        self.differentiable = all(part.differentiable for part in self.parts)

    @property
    def domain(self) -> Box:
        return Box(sum(part.domain.dimension for part in self.parts))

    @property
    def identity(self) -> tuple[float, ...] | None:
        found: tuple[float, ...] = ()
        for part in self.parts:
            if part.identity is None:
                return None
            found += part.identity
        return found

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.parameters)

    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        for part, own in zip(self.parts, self._split(points)):
            images = part(own, images)
        assert images is not None, "each part varies source images"
        return images

    def natural(self, points: Tensor) -> Tensor:
        return torch.cat([part.natural(own) for part, own in zip(self.parts, self._split(points))], dim=1)

    def to(self, device: torch.device | str) -> "Composition":
        return Composition([part.to(device) for part in self.parts])

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "parts": [part.describe() for part in self.parts]}

    def _split(self, points: Tensor) -> tuple[Tensor, ...]:
        return torch.split(points, [part.domain.dimension for part in self.parts], dim=1)
