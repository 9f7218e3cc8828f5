"""pix2pix: a U-Net that redraws images, and the PatchGAN that looks at images beside their redrawing."""

from itertools import pairwise
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, relu

from oodscope.base.config import StrictModel
from oodscope.models.generators.spectral import SpectralConv
from oodscope.models.generators.stylegan import sides, widths

_DROPPED = 0.5
_NOISY = 3
"""Decoder blocks with dropout, counted from the innermost."""


class UnetShape(StrictModel):
    """What decides the layers of a ``UnetGenerator``.

    Parameters
    ----------
    size : side of the images; see ``GeneratorShape``.
    channels : 3 for colour, 1 for grey.
    width : channels at full size. They double with every halving of the side, up to four times as many.
    """

    kind: Literal["unet"] = "unet"
    size: int = Field(default=32, ge=8)
    channels: int = Field(default=3, ge=1)
    width: int = Field(default=64, ge=1)


class UnetGenerator(nn.Module):
    """Images from images: down to 4 to 7 pixels and up again, each level beside what it was on the way down.

    Isola et al., "Image-to-Image Translation with Conditional Adversarial Networks", CVPR 2017. Its noise is dropout in
    the three innermost decoder blocks, in training and in drawing alike; the masks come from a generator of random
    numbers that the caller seeds, never from torch's global one.

    Parameters
    ----------
    shape : see ``UnetShape``.
    """

    def __init__(self, shape: UnetShape) -> None:
        super().__init__()
        self.shape = shape
        counts = widths(len(sides(shape.size)), shape.width)[::-1]
        self.entry = nn.Conv2d(shape.channels, counts[0], 3, padding=1)
        self.downs = nn.ModuleList(Block(nn.Conv2d(a, b, 4, 2, 1, bias=False), b) for a, b in pairwise(counts))
        self.middle = Block(nn.Conv2d(counts[-1], counts[-1], 3, padding=1, bias=False), counts[-1])
        self.ups = nn.ModuleList(
            Block(nn.ConvTranspose2d(2 * a, b, 4, 2, 1, bias=False), b) for a, b in pairwise(counts[::-1])
        )
        self.colours = nn.Conv2d(2 * counts[0], shape.channels, 3, padding=1)

    def forward(self, images: Tensor, draws: torch.Generator) -> Tensor:
        """Images like ``images``, ``[N, channels, size, size]`` in [-1, 1].

        Parameters
        ----------
        draws : the source of the noise, on the images' device.
        """
        maps = self.entry(images.contiguous(memory_format=torch.channels_last))
        passed = []
        for down in self.downs:
            passed.append(maps)
            maps = down(leaky_relu(maps, 0.2))
        passed.append(maps)
        maps = dropped(self.middle(leaky_relu(maps, 0.2)), draws)
        for number, up in enumerate(self.ups, start=1):
            maps = up(relu(torch.cat([maps, passed.pop()], 1)))
            if number < _NOISY:
                maps = dropped(maps, draws)
        return torch.tanh(self.colours(relu(torch.cat([maps, passed.pop()], 1)))).float()


class Block(nn.Module):
    """A convolution and batch norm."""

    def __init__(self, conv: nn.Module, channels: int) -> None:
        super().__init__()
        self.conv, self.norm = conv, nn.BatchNorm2d(channels)

    def forward(self, maps: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.conv(maps))
        return normed


def dropped(maps: Tensor, draws: torch.Generator) -> Tensor:
    """Half of the values at zero, the others doubled."""
    chance = torch.rand(maps.shape, generator=draws, device=maps.device)
    return maps * ((chance >= _DROPPED).to(maps.dtype) / (1 - _DROPPED))


class PatchDiscriminator(nn.Module):
    """Looks at two images, one upon the other, and judges every patch of 16 x 16 pixels: 14 x 14 logits at 32 px.

    pix2pix judges patches of 70 pixels in images of 256; this is its variant for patches of 16. Spectral norm stands in
    for batch norm, so that a pair is judged by itself.

    Parameters
    ----------
    channels : of one image.
    width : channels after the first convolution; the second has twice as many.
    """

    def __init__(self, channels: int = 3, width: int = 64) -> None:
        super().__init__()
        self.first = SpectralConv(2 * channels, width, 4, stride=2, padding=1)
        self.second = SpectralConv(width, 2 * width, 4, padding=1)
        self.logit = SpectralConv(2 * width, 1, 4, padding=1)

    def forward(self, given: Tensor, drawn: Tensor) -> Tensor:
        """Logits ``[N, H/2 - 2, W/2 - 2]`` of pairs in [-1, 1], larger = more real."""
        maps = torch.cat([given, drawn], 1).contiguous(memory_format=torch.channels_last)
        maps = leaky_relu(self.second(leaky_relu(self.first(maps), 0.2)), 0.2)
        logits: Tensor = self.logit(maps)
        return logits.squeeze(1).float()
