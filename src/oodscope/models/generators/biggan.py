r"""BigGanGenerator: a compact class-conditional generator in the manner of BigGAN, for 28, 32 and 64 px."""

from itertools import pairwise
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, relu

from oodscope.base.config import StrictModel
from oodscope.models.generators.spectral import SelfAttention, SpectralConv, SpectralEmbedding, SpectralLinear
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


class BigGanShape(StrictModel):
    """What decides the layers of a ``BigGanGenerator``.

    Parameters
    ----------
    size : side of the images; see ``GeneratorShape``.
    channels : 3 for colour, 1 for grey.
    classes : that it is asked for by number.
    latent : length of the latents, a multiple of the levels (4 at 32 px, 5 at 64): each level reads its own share.
    width : channels at full size. They double with every halving of the side, up to four times as many.
    embedding : length of the vector that all levels know a class by.
    """

    kind: Literal["biggan"] = "biggan"
    size: int = Field(default=32, ge=4)
    channels: int = Field(default=3, ge=1)
    classes: int = Field(default=10, ge=1)
    latent: int = Field(default=80, ge=1)
    width: int = Field(default=64, ge=1)
    embedding: int = Field(default=128, ge=1)

    @model_validator(mode="after")
    def _latent_is_shared_out(self) -> "BigGanShape":
        levels = len(sides(self.size))
        if self.latent % levels:
            raise ValueError(f"latent must be a multiple of {levels}, the levels of {self.size} px, not {self.latent}")
        return self


class ConditionalNorm(nn.Module):
    r"""Batch normalisation whose gain and bias depend on a condition.

    .. math:: y = (1 + G c)\, \frac{x - μ}{\sqrt{σ^2 + ε}} + B c
    """

    def __init__(self, channels: int, condition: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, affine=False)
        self.gain = SpectralLinear(condition, channels, bias=False)
        self.bias = SpectralLinear(condition, channels, bias=False)

    def forward(self, maps: Tensor, condition: Tensor) -> Tensor:
        gain, bias = self.gain(condition)[:, :, None, None], self.bias(condition)[:, :, None, None]
        normed: Tensor = self.norm(maps)
        return torch.addcmul(bias.to(normed.dtype), normed, 1 + gain.to(normed.dtype))


class UpBlock(nn.Module):
    """A residual block that doubles the side; both paths are doubled by repeating pixels."""

    def __init__(self, inputs: int, outputs: int, condition: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = ConditionalNorm(inputs, condition), ConditionalNorm(outputs, condition)
        self.first, self.second = SpectralConv(inputs, outputs), SpectralConv(outputs, outputs)
        self.skip = SpectralConv(inputs, outputs, 1)

    def forward(self, maps: Tensor, condition: Tensor) -> Tensor:
        inner: Tensor = self.first(_doubled(relu(self.first_norm(maps, condition))))
        inner = self.second(relu(self.second_norm(inner, condition)))
        # a convolution of one pixel and the repetition of pixels commute: a quarter of the work
        return inner + _doubled(self.skip(maps))


class BigGanGenerator(nn.Module):
    """Images from Gaussian latents and classes (Brock et al., "Large Scale GAN Training", ICLR 2019).

    Spectral norm, conditional batch norm fed by a share of the latent and a shared class vector, self-attention at half
    the size, tanh. Narrower than the published CIFAR network (96 channels, four times as many at every level).

    Parameters
    ----------
    shape : see ``BigGanShape``.
    """

    def __init__(self, shape: BigGanShape) -> None:
        super().__init__()
        self.shape = shape
        levels = sides(shape.size)
        counts = widths(len(levels), shape.width)
        self.share, self.start = shape.latent // len(levels), (counts[0], levels[0], levels[0])
        condition = self.share + shape.embedding
        self.embedding = nn.Embedding(shape.classes, shape.embedding)
        nn.init.orthogonal_(self.embedding.weight)
        self.first = SpectralLinear(self.share, counts[0] * levels[0] ** 2)
        self.blocks = nn.ModuleList(UpBlock(a, b, condition) for a, b in pairwise(counts))
        self.attention = SelfAttention(counts[-2]) if len(levels) > 2 else None
        self.norm = nn.BatchNorm2d(counts[-1])
        self.colours = SpectralConv(counts[-1], shape.channels)

    @property
    def latent_dimension(self) -> int:
        return self.shape.latent

    @property
    def classes(self) -> int:
        return self.shape.classes

    def forward(self, latents: Tensor, classes: Tensor) -> Tensor:
        """Images ``[N, channels, size, size]``, black at -1 and white at 1, of latents ``[N, latent]`` and classes."""
        shares, known = torch.split(latents, self.share, dim=1), self.embedding(classes)
        maps = self.first(shares[0]).unflatten(1, self.start).contiguous(memory_format=torch.channels_last)
        for number, block in enumerate(self.blocks):
            if self.attention is not None and number == len(self.blocks) - 1:
                maps = self.attention(maps)
            maps = block(maps, torch.cat([shares[number + 1], known], 1))
        return torch.tanh(self.colours(relu(self.norm(maps)))).float()


def _doubled(maps: Tensor) -> Tensor:
    return interpolate(maps, scale_factor=2, mode="nearest")
