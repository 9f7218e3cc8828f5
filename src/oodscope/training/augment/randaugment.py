"""RandAugment: operations drawn at random, all of one strength."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from oodscope.training.augment.base import Augmentation
from oodscope.training.augment.operations import OPERATIONS, apply_operations, both_ways

BINS = 31
"""Steps between no change and the strongest."""


class RandAugment(Augmentation):
    """Some of fourteen operations, drawn for each image, at one magnitude.

    Cubuk et al., "RandAugment: Practical Automated Data Augmentation with a Reduced Search Space", NeurIPS 2020. The
    defaults are OpenOOD's for CIFAR; for ImageNet-200 it takes magnitude 10, for ImageNet-1K two operations at 9. The
    operations, their ranges and 31 steps of magnitude are torchvision's.

    Parameters
    ----------
    count : operations one after the other.
    magnitude : step of 0 to 30.
    """

    kind: ClassVar[str] = "randaugment"

    count: int = Field(default=1, gt=0)
    magnitude: int = Field(default=14, ge=0, lt=BINS)

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        count, device = len(pixels), generator.device
        for _ in range(self.count):
            operation = torch.randint(len(OPERATIONS), (count,), generator=generator, device=device).to(pixels.device)
            positive = (torch.rand(count, generator=generator, device=device) < 0.5).to(pixels.device)
            pixels = apply_operations(pixels, operation, self._strengths(pixels, operation, positive))
        return pixels

    def _strengths(self, pixels: Tensor, operation: Tensor, positive: Tensor) -> Tensor:
        share, (height, width) = self.magnitude / (BINS - 1), pixels.shape[2:]
        amounts = {
            "shear_x": 0.3 * share,
            "shear_y": 0.3 * share,
            "translate_x": 150 / 331 * width * share,
            "translate_y": 150 / 331 * height * share,
            "rotate": 30 * share,
            "brightness": 0.9 * share,
            "color": 0.9 * share,
            "contrast": 0.9 * share,
            "sharpness": 0.9 * share,
            "posterize": 8.0 - round(4 * share),
            "solarize": 255 * (1 - share),
        }
        return both_ways([amounts], pixels.device)[positive.long(), 0, operation]
