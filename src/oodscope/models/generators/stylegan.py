r"""StyleGenerator: a compact generator in the manner of StyleGAN2, for 28, 32 and 64 px."""

import math
from itertools import pairwise

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, conv_transpose2d, interpolate, leaky_relu, linear, normalize

from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError

# Layers with an equalised learning rate: weights are kept at unit scale and scaled when they are used.
#
# Adam moves every weight by about its learning rate. Weights that are stored as standard normal numbers and multiplied
# by He's constant in the forward pass therefore all learn at one relative speed, whatever their fan-in (Karras et al.,
# "Progressive Growing of GANs", ICLR 2018).


def leaky(values: Tensor) -> Tensor:
    """Leaky ReLU of slope 0.2, times √2, which keeps the second moment of standard normal values near one."""
    return leaky_relu(values, 0.2) * math.sqrt(2)


class EqualLinear(nn.Module):
    """A linear layer.

    Parameters
    ----------
    bias : the bias at the start.
    rate : its learning rate, relative to that of other layers; the mapping network learns at 0.01.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: float = 0.0, rate: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / rate)
        self.bias = nn.Parameter(torch.full((outputs,), bias / rate))
        self.scale, self.rate = rate / math.sqrt(inputs), rate

    def forward(self, values: Tensor) -> Tensor:
        return linear(values, self.weight * self.scale, self.bias * self.rate)


class EqualConv(nn.Module):
    """A convolution that keeps the size of its input, or halves it after a blur that holds back what would alias."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, *, down: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.scale, self.padding, self.down = 1 / math.sqrt(inputs * kernel**2), kernel // 2, down

    def forward(self, images: Tensor) -> Tensor:
        if self.down:
            images = nn.functional.avg_pool2d(images, 2, stride=1)
        stride = 2 if self.down else 1
        return conv2d(images, self.weight * self.scale, self.bias, stride=stride, padding=self.padding)


class ModulatedConv(nn.Module):
    r"""Weight modulation and demodulation of StyleGAN2 (Karras et al., CVPR 2020, section 2.2).

    .. math:: w'_{jik} = s_i\, w_{jik}, \qquad w''_{jik} = w'_{jik} \Big/ \sqrt{\textstyle\sum_{i,k} {w'_{jik}}^2 + ε}

    A kernel per image would need a grouped convolution. Convolution is linear, so the same numbers come from scaling
    the input channels by :math:`s_i`, one shared convolution, and scaling the output channels by the root: an order
    of magnitude faster, and nothing in it depends on the size of the batch.

    Parameters
    ----------
    style : length of the style vector, from which an affine layer makes :math:`s`.
    demodulate : whether outputs are brought back to unit variance; colours are not.
    up : doubles height and width by a transposed convolution and a blur over 2 x 2 pixels.
    """

    def __init__(
        self, inputs: int, outputs: int, style: int, *, kernel: int = 3, demodulate: bool = True, up: bool = False
    ) -> None:
        super().__init__()
        self.affine = EqualLinear(style, inputs, bias=1.0)
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.scale, self.padding = 1 / math.sqrt(inputs * kernel**2), kernel // 2
        self.demodulate, self.up = demodulate, up

    def forward(self, images: Tensor, styles: Tensor) -> Tensor:
        weight = self.weight * self.scale
        # squares of styles lose too much in bfloat16, and these products are small
        with torch.autocast(images.device.type, enabled=False):
            scales = self.affine(styles)
            if self.demodulate:
                norms = torch.rsqrt(scales.square() @ weight.square().sum((2, 3)).T + 1e-8)
        images = images * scales.to(images.dtype)[:, :, None, None]
        if self.up:
            # of the inserted pixels three in four are zero: the sum over 2 x 2, not the mean, keeps the scale
            images = 4 * avg_pool2d(conv_transpose2d(images, weight.transpose(0, 1), stride=2), 2, stride=1)
        else:
            images = conv2d(images, weight, padding=self.padding)
        return images * norms.to(images.dtype)[:, :, None, None] if self.demodulate else images


class StyledConv(nn.Module):
    """Modulated convolution, noise, bias, leaky ReLU.

    The noise is drawn once, at construction, and kept: the generator is a function of its latent alone, and so the
    lowest score that a search saw is a score that an image has.
    """

    noise: Tensor

    def __init__(self, inputs: int, outputs: int, style: int, side: int, *, up: bool = False) -> None:
        super().__init__()
        self.conv = ModulatedConv(inputs, outputs, style, up=up)
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.strength = nn.Parameter(torch.zeros(()))
        self.register_buffer("noise", torch.randn(side, side))

    def forward(self, images: Tensor, styles: Tensor) -> Tensor:
        images = self.conv(images, styles)
        added = self.noise * self.strength + self.bias[:, None, None]
        return leaky(images + added.to(images.dtype))


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
