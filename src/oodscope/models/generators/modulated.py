r"""ModulatedConv: a convolution whose input channels are scaled by a style, one style per image."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, conv_transpose2d

from oodscope.models.generators.equalized import EqualLinear, leaky


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
