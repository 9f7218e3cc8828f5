"""Square: random search by squares of pixels at the edge of an l-inf ball."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.generation.samplers.base import Sampler, State, check_positive, take
from oodscope.generation.search.target import Target
from oodscope.generation.variations.domain import Box

HALVINGS = (0.001, 0.005, 0.02, 0.1, 0.2, 0.4, 0.6, 0.8)
"""Shares of the schedule after which the area of a square is halved (Andriushchenko et al. 2020, section 4)."""


@dataclass(frozen=True)
class Square(Sampler):
    r"""A square of pixels is set to a corner of the ball, channel by channel; it stays if the energy falls.

    The first move sets vertical stripes of :math:`\pm\epsilon`. Then squares of a share :math:`p` of the image are
    tried at random places, and :math:`p` is halved on a fixed schedule (Andriushchenko et al., ECCV 2020).

    Parameters
    ----------
    share : the first :math:`p`.
    schedule : steps after which the squares shrink no more.
    """

    name = "square"

    share: float = 0.8
    schedule: int = 10_000

    def __post_init__(self) -> None:
        check_positive(self.name, share=self.share, schedule=self.schedule)
        if self.share > 1:
            raise OodscopeError(f"{self.name}: share is a part of the image, not {self.share}")

    def begin(self, target: Target, start: Tensor) -> State:
        images = target.images
        if not isinstance(target.domain, Box) or images is None or images[0].numel() != target.domain.dimension:
            raise OodscopeError(f"{self.name}: needs a variation with one parameter per pixel, such as linf")
        return super().begin(target, start)

    def move(self, target: Target, state: State, number: int) -> None:
        assert target.images is not None, "checked at the beginning"
        channels, height, width = target.images.shape[1:]
        if number == 0:
            stripes = (target.noise.uniform(target.chains, channels, 1, width) < 0.5).float()
            points = stripes.expand(-1, -1, height, -1).reshape(state.points.shape)
            take(state, torch.ones_like(state.accepted, dtype=torch.bool), points, target.visit(points))
            return
        side = self.side(number, height, width)
        where = target.noise.uniform(2, target.chains)
        rows = _within(where[0], height, side).view(-1, 1, height, 1)
        columns = _within(where[1], width, side).view(-1, 1, 1, width)
        corner = (target.noise.uniform(target.chains, channels, 1, 1) < 0.5).float()
        before = state.points.view(-1, channels, height, width)
        points = torch.where(rows & columns, corner, before).reshape(state.points.shape)
        energy = target.visit(points)
        take(state, energy < state.energy, points, energy)

    def side(self, number: int, height: int, width: int) -> int:
        """Of the squares of a step, in pixels."""
        halvings = sum(number > part * self.schedule for part in HALVINGS)
        return max(1, min(round(math.sqrt(self.share * 0.5**halvings * height * width)), height, width))


def _within(place: Tensor, length: int, side: int) -> Tensor:
    """``[chains, length]``: which lines a stretch of ``side`` covers, that begins at a random place."""
    first = (place * (length - side + 1)).floor().unsqueeze(1)
    lines = torch.arange(length, device=place.device)
    return (lines >= first) & (lines < first + side)
