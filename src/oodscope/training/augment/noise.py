"""Noise: a part of the images gets Gaussian or speckle noise."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from oodscope.training.augment.base import Augmentation


class Noise(Augmentation):
    r"""Gaussian noise :math:`x + \sigma\xi`, or speckle noise :math:`x + \sigma x\xi`, on some of the images.

    Rusak et al., "A Simple Way to Make Neural Networks Robust Against Diverse Image Corruptions", ECCV 2020. Pixels are
    in [0, 1] and cut off there. Their Gaussian noise has a deviation of .5 at 224 px; after averaging over 7 x 7 pixels
    that is .07 at 32 px.

    Parameters
    ----------
    form : ``gaussian`` or ``speckle``.
    sigma : deviations, of which each noisy image draws one.
    share : of the images that get noise.
    """

    kind: ClassVar[str] = "noise"

    form: Literal["gaussian", "speckle"] = "gaussian"
    sigma: tuple[float, ...] = Field(default=(0.08,), min_length=1)
    share: float = Field(default=0.5, ge=0, le=1)

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        place = generator.device
        noise = torch.randn(pixels.shape, generator=generator, device=place).to(pixels.device)
        chance = torch.rand(2, len(pixels), 1, 1, 1, generator=generator, device=place).to(pixels.device)
        images = pixels.float() / 255
        size = torch.zeros_like(chance[1])
        for number, sigma in enumerate(self.sigma):
            size = torch.where(chance[1] * len(self.sigma) >= number, sigma, size)
        noisy = images + size * noise * (images if self.form == "speckle" else 1.0)
        varied = torch.where(chance[0] < self.share, noisy.clamp(0, 1), images)
        return (varied * 255).round().to(torch.uint8)
