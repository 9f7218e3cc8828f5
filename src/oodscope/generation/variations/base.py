r"""Variation: a map from parameters to images, one parameter vector per image."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from oodscope.generation.variations.domain import Box, Domain


def computed_in(images: Tensor) -> Tensor:
    """The images in at least float32: eight bits of bfloat16 lose levels, and positions entirely."""
    return images if images.dtype in (torch.float32, torch.float64) else images.float()


def wide(device: torch.device) -> torch.dtype:
    """float64 for the few numbers per image that decide where all its pixels go; Apple's GPUs have none."""
    return torch.float32 if device.type == "mps" else torch.float64


class Variation(ABC):
    r"""A family of images :math:`g(z)`, or :math:`g(z; x)` around a source image :math:`x`.

    Batched: row i of the parameters acts on image i. Nothing is asked of the device on the way, and gradients flow to
    the parameters where the map has them (``differentiable``).
    """

    name: str
    conditional: bool = True
    """Whether it varies source images; a generator makes its own."""
    differentiable: bool = True

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """Where the parameters live."""

    @property
    @abstractmethod
    def identity(self) -> tuple[float, ...] | None:
        """The parameters that return the source image unchanged; None where there are none."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """A name for each coordinate, with its unit; empty where coordinates mean nothing (pixels, latents)."""

    @abstractmethod
    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        """Images ``[N, C, H, W]`` with pixels in [0, 1].

        Parameters
        ----------
        points : ``[N, dimension]``, within the domain.
        images : ``[N, C, H, W]`` source images in [0, 1]; None for a generator.
        """

    def natural(self, points: Tensor) -> Tensor:
        """The same parameters ``[N, len(parameters)]`` in the units that ``parameters`` names."""
        return points[:, : len(self.parameters)]

    def to(self, device: torch.device | str) -> "Variation":
        """The same variation with whatever it holds on a device."""
        return self

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Name and settings as plain JSON values: what a result records, and what a resumed search compares."""


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
