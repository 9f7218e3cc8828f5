"""Augmentation: a random variation of a batch, and chains of them as a configuration declares them."""

from abc import ABC
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from oodscope.base.config import StrictModel


class Placement(NamedTuple):
    """What a training gives its augmentations before the first step.

    Parameters
    ----------
    cut : whether what comes before the centre crop is done while pictures are decoded.
    pictures : further pictures, uint8 ``[N, C, H, W]`` on the device, where the training has them.
    """

    cut: bool = False
    pictures: Tensor | None = None


class Augmentation(StrictModel, ABC):
    """A random variation of images, each drawn for itself; its settings are fields.

    All random numbers come from ``generator``, on ``generator.device``, and nothing asks the host, so that a GPU can
    record it with the step that it belongs to.

    Class attributes
    ----------------
    kind : how a configuration calls it: ``{kind: cutout, size: 8}``.
    before_crop : whether it varies the whole picture, by a method ``cut``, before that is cut to the network's size.
    """

    kind: ClassVar[str]
    before_crop: ClassVar[bool] = False

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """Vary uint8 images ``[B, C, H, W]``; a new batch of the same shape."""
        return pixels

    def after_scaling(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Vary images that are normalised already, where the mean colour is 0."""
        return images

    def placed(self, place: Placement) -> "Augmentation":
        """The same, as it works within one training."""
        return self

    @property
    def wants_pictures(self) -> bool:
        """Whether it mixes with further pictures that the training must be given."""
        return False

    def parts(self) -> tuple["Augmentation", ...]:
        """The single augmentations that it consists of."""
        return (self,)


class Unchanged(Augmentation):
    """Nothing is varied."""

    kind: ClassVar[str] = "none"


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

    def placed(self, place: Placement) -> Augmentation:
        return Chain(steps=tuple(step.placed(place) for step in self.steps))

    @property
    def wants_pictures(self) -> bool:
        return any(step.wants_pictures for step in self.steps)

    def parts(self) -> tuple[Augmentation, ...]:
        return tuple(part for step in self.steps for part in step.parts())
