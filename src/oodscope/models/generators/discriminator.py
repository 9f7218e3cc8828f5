"""Discriminator: what tells real images from generated ones while a generator is trained."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from oodscope.models.generators.equalized import EqualConv, EqualLinear, leaky
from oodscope.models.generators.stylegan import sides, widths

GROUP = 4
"""Images compared with each other by the minibatch deviation; a batch is a multiple of it."""


class Discriminator(nn.Module):
    """Plain convolutions from full size down to 4 to 7 pixels (the architecture "orig" of StyleGAN2), then a logit.

    Before the last convolution each image learns how much the images of its group differ from each other, so that a
    generator that always draws the same is found out.

    Parameters
    ----------
    size, channels : of the images.
    width : channels at full size; they double with every halving of the side, up to four times as many.
    """

    def __init__(self, size: int, channels: int = 3, width: int = 64) -> None:
        super().__init__()
        levels = sides(size)[::-1]
        counts = widths(len(levels), width)[::-1]
        self.colours = EqualConv(channels, counts[0], 1)
        self.convs = nn.ModuleList(EqualConv(count, count) for count in counts[:-1])
        self.downs = nn.ModuleList(EqualConv(a, b, down=True) for a, b in pairwise(counts))
        self.last = EqualConv(counts[-1] + 1, counts[-1])
        self.dense = EqualLinear(counts[-1] * levels[-1] ** 2, counts[-1])
        self.logit = EqualLinear(counts[-1], 1)

    def forward(self, images: Tensor) -> Tensor:
        """One logit per image ``[N, C, H, W]`` in [-1, 1], larger = more real."""
        maps = leaky(self.colours(images.contiguous(memory_format=torch.channels_last)))
        for conv, down in zip(self.convs, self.downs):
            maps = leaky(down(leaky(conv(maps))))
        maps = torch.cat([maps, minibatch_deviation(maps)], 1)
        logits: Tensor = self.logit(leaky(self.dense(leaky(self.last(maps)).flatten(1))))
        return logits.squeeze(1).float()


def minibatch_deviation(maps: Tensor) -> Tensor:
    """One more channel ``[N, 1, H, W]``: the standard deviation within groups of images, averaged over the map."""
    count, channels, height, width = maps.shape
    grouped = maps.float().reshape(GROUP, -1, channels, height, width)
    deviations = grouped.var(0, unbiased=False).add(1e-8).sqrt().mean((1, 2, 3))
    return deviations.to(maps.dtype).repeat(GROUP).view(count, 1, 1, 1).expand(-1, -1, height, width)
