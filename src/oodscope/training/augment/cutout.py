"""Cutout: one square of each image is blank."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from oodscope.training.augment.base import Augmentation


class Cutout(Augmentation):
    """A square of the mean colour, its centre anywhere in the image, cut off at the edges.

    DeVries & Taylor, "Improved Regularization of Convolutional Neural Networks with Cutout", arXiv 1708.04552, whose
    sides are 16 pixels for CIFAR-10 and 8 for CIFAR-100.

    Parameters
    ----------
    size : side of the square, in pixels.
    """

    kind: ClassVar[str] = "cutout"

    size: int = Field(default=16, gt=0)

    def after_scaling(self, images: Tensor, generator: torch.Generator) -> Tensor:
        count, _, height, width = images.shape
        inside = [self._covered(count, length, generator).to(images.device) for length in (height, width)]
        return images.masked_fill((inside[0][:, :, None] & inside[1][:, None, :])[:, None], 0.0)

    def _covered(self, count: int, length: int, generator: torch.Generator) -> Tensor:
        """Which of ``length`` positions lie in the square, per image, ``[count, length]``."""
        device = generator.device
        centre = torch.randint(length, (count, 1), generator=generator, device=device)
        place = torch.arange(length, device=device)
        return (place >= centre - self.size // 2) & (place < centre + self.size - self.size // 2)
