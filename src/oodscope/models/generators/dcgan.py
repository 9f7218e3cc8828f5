"""DCGAN: the plain convolutional generator and its discriminator, for 28 px digits among others."""

from itertools import pairwise
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, relu

from oodscope.base.config import StrictModel
from oodscope.models.generators.spectral import SpectralConv, SpectralLinear
from oodscope.models.generators.stylegan import sides, widths

_DEVIATION = 0.02
"""Of the first weights, as in the paper."""


class DcganShape(StrictModel):
    """What decides the layers of a ``DcganGenerator``.

    Parameters
    ----------
    size : side of the images; see ``GeneratorShape``.
    channels : 3 for colour, 1 for grey.
    latent : length of the latents.
    width : channels below full size. They double with every halving of the side, up to four times as many.
    """

    kind: Literal["dcgan"] = "dcgan"
    size: int = Field(default=28, ge=8)
    channels: int = Field(default=1, ge=1)
    latent: int = Field(default=100, ge=1)
    width: int = Field(default=64, ge=1)


class DcganGenerator(nn.Module):
    """Images from Gaussian latents: transposed convolutions of 4 x 4, batch norm, ReLU, tanh.

    Radford et al., "Unsupervised Representation Learning with Deep Convolutional GANs", ICLR 2016; from 7 pixels for
    28, from 4 for 32.

    Parameters
    ----------
    shape : see ``DcganShape``.
    """

    classes = 0

    def __init__(self, shape: DcganShape) -> None:
        super().__init__()
        self.shape = shape
        levels = sides(shape.size)
        counts = widths(len(levels) - 1, shape.width)
        self.start = (counts[0], levels[0], levels[0])
        self.first = nn.Linear(shape.latent, counts[0] * levels[0] ** 2, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(count) for count in counts)
        self.ups = nn.ModuleList(
            nn.ConvTranspose2d(a, b, 4, stride=2, padding=1) for a, b in pairwise([*counts, shape.channels])
        )
        for layer in (self.first, *self.ups):
            assert isinstance(layer, (nn.Linear, nn.ConvTranspose2d))
            nn.init.normal_(layer.weight, std=_DEVIATION)

    @property
    def latent_dimension(self) -> int:
        return self.shape.latent

    def forward(self, latents: Tensor, classes: Tensor | None = None) -> Tensor:
        """Images ``[N, channels, size, size]``, black at -1 and white at 1; classes are not looked at."""
        maps = self.first(latents).unflatten(1, self.start).contiguous(memory_format=torch.channels_last)
        for norm, up in zip(self.norms, self.ups):
            maps = up(relu(norm(maps)))
        return torch.tanh(maps).float()


class DcganDiscriminator(nn.Module):
    """Convolutions of 4 x 4 that halve the side, leaky ReLU, a logit.

    With spectral norm in the place of the paper's batch norm: the hinge loss wants a bounded slope, and an image
    is then judged by itself.

    Parameters
    ----------
    size, channels : of the images.
    width : channels after the first halving; they double with every further one, up to four times as many.
    """

    def __init__(self, size: int, channels: int = 1, width: int = 64) -> None:
        super().__init__()
        levels = sides(size)
        counts = widths(len(levels) - 1, width)[::-1]
        self.downs = nn.ModuleList(SpectralConv(a, b, 4, stride=2, padding=1) for a, b in pairwise([channels, *counts]))
        self.logit = SpectralLinear(counts[-1] * levels[0] ** 2, 1)

    def forward(self, images: Tensor, classes: Tensor | None = None) -> Tensor:
        """One logit per image ``[N, C, H, W]`` in [-1, 1], larger = more real; classes are not looked at."""
        maps = images.contiguous(memory_format=torch.channels_last)
        for down in self.downs:
            maps = leaky_relu(down(maps), 0.2)
        logits: Tensor = self.logit(maps.flatten(1))
        return logits.squeeze(1).float()
