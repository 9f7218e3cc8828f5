"""Colour jitter: brightness, contrast, saturation and hue of each image vary, and some images lose their colours."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from oodscope.training.augment.base import Augmentation


class ColourJitter(Augmentation):
    """Vary the colours of most images, and make some of them grey, as contrastive learning does.

    Chen et al., "A Simple Framework for Contrastive Learning of Visual Representations", ICML 2020. Factors of
    brightness, contrast and saturation are uniform on :math:`[1 - a, 1 + a]`, the hue moves by a share of the circle
    that is uniform on :math:`[-h, h]`; the four are applied in this order. It works on pixels, before they are
    normalised: colours that leave [0, 1] are cut off, and of normalised images most would be.

    Parameters
    ----------
    strength : :math:`a`.
    hue : :math:`h`.
    probability : of varying an image at all.
    grey : probability of a grey image, after that.
    normalised : vary images after they are normalised, with the same bounds of [0, 1], as the code behind OpenOOD's row
        of CSI does: most entries of an image that is varied are then cut off, and no test image is.
    """

    kind: ClassVar[str] = "jitter"

    strength: float = Field(default=0.4, ge=0, le=1)
    hue: float = Field(default=0.1, ge=0, le=0.5)
    probability: float = Field(default=0.8, ge=0, le=1)
    grey: float = Field(default=0.2, ge=0, le=1)
    normalised: bool = False

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        if self.normalised:
            return pixels
        chance = self._chance(pixels, generator)
        if pixels.shape[1] != 3:
            return pixels
        return (self._vary(pixels.float() / 255, chance) * 255).round().to(torch.uint8)

    def after_scaling(self, images: Tensor, generator: torch.Generator) -> Tensor:
        if not self.normalised or images.shape[1] != 3:
            return images
        return self._vary(images, self._chance(images, generator))

    def _chance(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return torch.rand(6, len(images), 1, 1, 1, generator=generator, device=generator.device).to(images.device)

    def _vary(self, images: Tensor, chance: Tensor) -> Tensor:
        factors = 1 + self.strength * (2 * chance[:3] - 1)
        varied = (images * factors[0]).clamp(0, 1)
        varied = _blend(varied, _grey(varied).mean(dim=(2, 3), keepdim=True), factors[1])
        varied = _blend(varied, _grey(varied), factors[2])
        varied = _turned(varied, self.hue * (2 * chance[3] - 1))
        images = torch.where(chance[4] < self.probability, varied, images)
        return torch.where(chance[5] < self.grey, _grey(images).expand_as(images), images)


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * images + (1 - factor) * other).clamp(0, 1)


def _grey(images: Tensor) -> Tensor:
    """The luminance, ``[B, 1, H, W]``."""
    return 0.299 * images[:, :1] + 0.587 * images[:, 1:2] + 0.114 * images[:, 2:]


def _turned(images: Tensor, shift: Tensor) -> Tensor:
    """Images with their hue moved by a share of the circle; value and saturation stay."""
    value, low = images.amax(dim=1, keepdim=True), images.amin(dim=1, keepdim=True)
    spread = value - low
    safe = torch.where(spread > 0, spread, 1.0)
    red, green, blue = images.chunk(3, dim=1)
    sector = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    hue = (sector / 6 + shift) % 1.0
    # of each channel: how far the hue is from its own, in sixths of the circle
    offsets = torch.cat([(hue * 6 + start) % 6 for start in (5, 3, 1)], dim=1)
    weight = torch.minimum(offsets, 4 - offsets).clamp(0, 1)
    return value - spread * weight
