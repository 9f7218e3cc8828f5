"""Augmentation: a random variation of a batch, and chains of them as a configuration declares them."""

from abc import ABC
from typing import ClassVar

import torch
from torch import Tensor

from oodscope.base.config import StrictModel


class Augmentation(StrictModel, ABC):
    """A random variation of images, each drawn for itself; its settings are fields.

    All random numbers come from ``generator``, on ``generator.device``, and nothing asks the host, so that a GPU can
    record it with the step that it belongs to.

    Class attributes
    ----------------
    kind : how a configuration calls it: ``{kind: cutout, size: 8}``.
    """

    kind: ClassVar[str]

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """Vary uint8 images ``[B, C, H, W]``; a new batch of the same shape."""
        return pixels

    def after_scaling(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Vary images that are normalised already, where the mean colour is 0."""
        return images


class Chain(Augmentation):
    """Several augmentations, one after the other."""

    kind: ClassVar[str] = "chain"

    steps: tuple[Augmentation, ...]

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        for step in self.steps:
            pixels = step(pixels, generator)
        return pixels

    def after_scaling(self, images: Tensor, generator: torch.Generator) -> Tensor:
        for step in self.steps:
            images = step.after_scaling(images, generator)
        return images
