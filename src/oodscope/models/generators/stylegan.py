r"""StyleGenerator: a compact generator in the manner of StyleGAN2, for 28, 32 and 64 px."""

import math

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError
from oodscope.models.generators.equalized import EqualLinear, leaky
from oodscope.models.generators.modulated import ModulatedConv, StyledConv

_MAPPING_RATE = 0.01
_WIDEST = 4
"""The most channels of a layer, as a multiple of those at full size."""


class GeneratorShape(StrictModel):
    """What decides the layers of a ``StyleGenerator``.

    Parameters
    ----------
    size : side of the images: 4, 5, 6 or 7 times a power of two, so 28, 32 and 64 among others.
    channels : 3 for colour, 1 for grey.
    latent : dimension of the sphere that latents lie on; 64 in evaluation via generation.
    width : channels at full size. They double with every halving of the side, up to four times as many. With 48, a
        32 px image takes 0.10 billion multiplications, a fifth of a ResNet-18.
    mapping_layers : layers of the mapping network; the CIFAR configuration of StyleGAN2 has 2.
    """

    size: int = Field(default=32, ge=4)
    channels: int = Field(default=3, ge=1)
    latent: int = Field(default=64, ge=2)
    width: int = Field(default=48, ge=1)
    mapping_layers: int = Field(default=2, ge=1)


def sides(size: int) -> list[int]:
    """The side of the feature maps at each level, from coarse to fine, beginning with 4 to 7 pixels."""
    found = [size]
    while found[0] % 2 == 0 and found[0] >= 8:
        found.insert(0, found[0] // 2)
    if not 4 <= found[0] <= 7:
        raise ModelError(
            f"a generator cannot make images of {size} px: the side must be 4, 5, 6 or 7 times a power of two, "
            "such as 28, 32 or 64"
        )
    return found


def widths(count: int, width: int) -> list[int]:
    """Channels at each of ``count`` levels, from coarse to fine."""
    return [width * min(_WIDEST, 2**level) for level in reversed(range(count))]


class StyleGenerator(nn.Module):
    r"""Images from points of a sphere.

    A mapping network turns a latent into a style; from a learnt constant of 4 to 7 pixels, modulated convolutions
    double the side again and again, and each level adds its colours to the doubled colours of the level before.
    Latents are normalised first, so their length does not matter.

    Differs from the published StyleGAN2 in size, in its noise, which is constant from the first training step on, and
    in having neither style mixing nor path-length regularisation, as the CIFAR configuration.

    Parameters
    ----------
    shape : see ``GeneratorShape``.
    """

    mean_style: Tensor

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        self.shape = shape
        levels = sides(shape.size)
        counts = widths(len(levels), shape.width)
        style = counts[0]
        inputs = [shape.latent, *[style] * (shape.mapping_layers - 1)]
        self.mapping = nn.ModuleList(EqualLinear(each, style, rate=_MAPPING_RATE) for each in inputs)
        self.constant = nn.Parameter(torch.randn(1, counts[0], levels[0], levels[0]))
        self.first = StyledConv(counts[0], counts[0], style, levels[0])
        steps = list(zip(counts, counts[1:], levels[1:]))
        self.ups = nn.ModuleList(StyledConv(a, b, style, side, up=True) for a, b, side in steps)
        self.convs = nn.ModuleList(StyledConv(b, b, style, side) for _, b, side in steps)
        self.colours = nn.ModuleList(
            ModulatedConv(count, shape.channels, style, kernel=1, demodulate=False) for count in counts
        )
        self.grey = nn.Parameter(torch.zeros(shape.channels, 1, 1))
        self.register_buffer("mean_style", torch.zeros(style))

    @property
    def latent_dimension(self) -> int:
        return self.shape.latent

    def styles(self, latents: Tensor) -> Tensor:
        """The style of each latent ``[N, latent]``."""
        with torch.autocast(latents.device.type, enabled=False):
            values = normalize(latents.to(self.constant.dtype), dim=1) * math.sqrt(latents.shape[1])
            for layer in self.mapping:
                values = leaky(layer(values))
        return values

    def settle_mean_style(self, latents: Tensor) -> None:
        """Take the mean style of these latents as the centre that truncation draws towards."""
        with torch.no_grad():
            self.mean_style.copy_(self.styles(latents).mean(0))

    def forward(self, latents: Tensor, truncation: float = 1.0) -> Tensor:
        """Images ``[N, channels, size, size]``, black at -1 and white at 1; training does not hold them to that range.

        Parameters
        ----------
        truncation : styles are drawn towards their mean by this factor: 1 leaves them, 0 makes every image the mean
            one. What lies between trades variety for fewer failures.
        """
        styles = self.styles(latents)
        if truncation != 1:
            styles = torch.lerp(self.mean_style, styles, truncation)
        constant = self.constant.expand(len(latents), -1, -1, -1).contiguous(memory_format=torch.channels_last)
        maps = self.first(constant, styles)
        image: Tensor = self.colours[0](maps, styles).float() + self.grey
        for up, conv, colour in zip(self.ups, self.convs, self.colours[1:]):
            maps = conv(up(maps, styles), styles)
            # bilinear doubling is the blur (1, 3, 3, 1) of the paper
            image = interpolate(image, scale_factor=2, mode="bilinear") + colour(maps, styles)
        return image
