r"""Variation: a map from parameters to images, one parameter vector per image."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from oodscope.generation.domains import Domain


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
