r"""ProjectionDiscriminator: tells whether an image is real, and an image of its class."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, relu

from oodscope.models.generators.attention import SelfAttention
from oodscope.models.generators.spectral import SpectralConv, SpectralEmbedding, SpectralLinear
from oodscope.models.generators.stylegan import sides, widths


class DownBlock(nn.Module):
    """A residual block that halves the side.

    Parameters
    ----------
    colours : the block reads the image itself, which is not rectified.
    down : whether it halves.
    """

    def __init__(self, inputs: int, outputs: int, *, colours: bool = False, down: bool = True) -> None:
        super().__init__()
        self.first, self.second = SpectralConv(inputs, outputs), SpectralConv(outputs, outputs)
        self.skip = SpectralConv(inputs, outputs, 1)
        self.colours, self.down = colours, down

    def forward(self, maps: Tensor) -> Tensor:
        inner = self.second(relu(self.first(maps if self.colours else relu(maps))))
        if self.down:
            # the mean of four pixels and a convolution of one commute: a quarter of the work
            inner, maps = avg_pool2d(inner, 2), avg_pool2d(maps, 2)
        summed: Tensor = inner + self.skip(maps)
        return summed


class ProjectionDiscriminator(nn.Module):
    r"""Residual blocks down to 4 to 7 pixels, their sum :math:`φ(x)`, and the projection of a class on it.

    .. math:: D(x, y) = w^\top φ(x) + b + e_y^\top φ(x)

    Miyato and Koyama, "cGANs with Projection Discriminator", ICLR 2018; blocks as in BigGAN, with spectral norm
    everywhere and self-attention at half the size.

    Parameters
    ----------
    size, channels : of the images.
    classes : how many.
    width : channels at full size; they double with every halving of the side, up to four times as many.
    """

    def __init__(self, size: int, channels: int, classes: int, width: int = 64) -> None:
        super().__init__()
        levels = sides(size)
        counts = widths(len(levels), width)[::-1]
        self.entry = DownBlock(channels, counts[0], colours=True)
        self.attention = SelfAttention(counts[0]) if len(levels) > 2 else None
        self.blocks = nn.ModuleList(
            [
                *(DownBlock(a, b) for a, b in pairwise(counts[:-1])),
                DownBlock(counts[-2], counts[-1], down=False),
            ]
        )
        self.logit = SpectralLinear(counts[-1], 1)
        self.embedding = SpectralEmbedding(classes, counts[-1])

    def features(self, images: Tensor) -> Tensor:
        """φ(x), ``[N, D]``."""
        maps = self.entry(images.contiguous(memory_format=torch.channels_last))
        if self.attention is not None:
            maps = self.attention(maps)
        for block in self.blocks:
            maps = block(maps)
        return relu(maps).float().sum((2, 3))

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        """One logit per image ``[N, C, H, W]`` in [-1, 1], larger = more real."""
        features = self.features(images)
        with torch.autocast(images.device.type, enabled=False):
            logits: Tensor = self.logit(features).squeeze(1) + (self.embedding(classes) * features).sum(1)
        return logits
