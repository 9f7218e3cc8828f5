"""PixelCNN++: the probability of each pixel given those before it, as a mixture of discretised logistics."""

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import elu, logsigmoid, pad
from torch.nn.utils.parametrizations import weight_norm

from oodscope.models.density.base import LEVELS, DensityModel, DensityShape, bits_per_dimension

LEAST_LOG_SCALE = -7.0
EDGE = 0.999
"""Values in [-1, 1] beyond this are the first or the last level, whose bin has no outer end."""


class PixelCNNShape(DensityShape):
    """What decides the layers of a ``PixelCNN``.

    Parameters
    ----------
    filters : channels of every layer; the paper has 160, EvG 80.
    blocks : gated residual blocks at each resolution; the paper has 5.
    resolutions : the side is halved between them.
    mixtures : logistics in the mixture of each pixel; the paper has 10.
    dropout : in every block, while training.
    """

    kind: Literal["pixelcnn"] = "pixelcnn"
    filters: int = Field(default=48, ge=1)
    blocks: int = Field(default=2, ge=1)
    resolutions: int = Field(default=3, ge=1)
    mixtures: int = Field(default=5, ge=1)
    dropout: float = Field(default=0.5, ge=0, lt=1)

    @property
    def outputs(self) -> int:
        """Numbers per pixel: logits, then means, log-scales and coefficients of each channel."""
        pairs = self.channels * (self.channels - 1) // 2
        return self.mixtures * (1 + 2 * self.channels + pairs)


class ShiftedConv(nn.Module):
    """A convolution that sees no later pixel: rows above and its own (``down``), or also only pixels to the left.

    Parameters
    ----------
    kernel : height and width; it reaches up by height - 1.
    right : whether it reaches left only, by width - 1; otherwise to both sides.
    stride : 2 halves the side.
    """

    def __init__(
        self, before: int, after: int, kernel: tuple[int, int], *, right: bool = False, stride: int = 1
    ) -> None:
        super().__init__()
        height, width = kernel
        self.margins = (width - 1, 0, height - 1, 0) if right else (width // 2, width // 2, height - 1, 0)
        self.conv = weight_norm(nn.Conv2d(before, after, kernel, stride))

    def forward(self, values: Tensor) -> Tensor:
        made: Tensor = self.conv(pad(values, self.margins))
        return made


class ShiftedDeconv(nn.Module):
    """A transposed convolution that doubles the side and sees no later pixel."""

    def __init__(self, before: int, after: int, kernel: tuple[int, int], *, right: bool = False) -> None:
        super().__init__()
        self.aside = 0 if right else kernel[1] // 2
        self.conv = weight_norm(nn.ConvTranspose2d(before, after, kernel, 2, output_padding=1))

    def forward(self, values: Tensor) -> Tensor:
        height, width = 2 * values.shape[2], 2 * values.shape[3]
        made: Tensor = self.conv(values)
        return made[:, :, :height, self.aside : self.aside + width]


class GatedBlock(nn.Module):
    r"""A gated residual block, :math:`x + a\,\sigma(b)`, with what another stream says in the middle.

    Parameters
    ----------
    kernel, right : of its two convolutions.
    beside : channels that come from the other stream or from a skip connection; 0 for none.
    """

    def __init__(self, filters: int, kernel: tuple[int, int], right: bool, dropout: float, beside: int = 0) -> None:
        super().__init__()
        self.first = ShiftedConv(2 * filters, filters, kernel, right=right)
        self.beside = weight_norm(nn.Conv2d(2 * beside, filters, 1)) if beside else None
        self.dropout = nn.Dropout2d(dropout)
        self.second = ShiftedConv(2 * filters, 2 * filters, kernel, right=right)

    def forward(self, values: Tensor, other: Tensor | None = None) -> Tensor:
        made = self.first(both_signs(values))
        if self.beside is not None and other is not None:
            made = made + self.beside(both_signs(other))
        left, gate = self.second(self.dropout(both_signs(made))).chunk(2, dim=1)
        gated: Tensor = values + left * torch.sigmoid(gate)
        return gated


UP, LEFT = (2, 3), (2, 2)
"""Kernels of the stream that sees rows above, and of the one that also sees pixels to the left."""


class _Floor(nn.Module):
    """The blocks of both streams at one resolution."""

    def __init__(self, count: int, filters: int, dropout: float, skips: bool) -> None:
        super().__init__()
        own = filters if skips else 0
        self.up = nn.ModuleList(GatedBlock(filters, UP, False, dropout, own) for _ in range(count))
        self.left = nn.ModuleList(GatedBlock(filters, LEFT, True, dropout, filters + own) for _ in range(count))


class PixelCNN(DensityModel):
    r"""A network whose output at a pixel sees only the pixels before it, and the mixture that it describes.

    .. math:: P(x_i \mid x_{<i}) = \sum_m \pi_m \prod_c \Bigl[S\bigl(\tfrac{x_{ic} + 1/255 - \mu_{mc}}{s_{mc}}\bigr)
              - S\bigl(\tfrac{x_{ic} - 1/255 - \mu_{mc}}{s_{mc}}\bigr)\Bigr]

    with the logistic cdf :math:`S`, open at the first and last level. The means of green and blue depend linearly on
    the channels before them. Salimans et al., ICLR 2017.
    """

    shape: PixelCNNShape
    likelihood = True

    def __init__(self, shape: PixelCNNShape) -> None:
        super().__init__(shape)
        count, filters, dropout = shape.resolutions, shape.filters, shape.dropout
        shape.halved(count - 1, f"a PixelCNN of {count} resolutions")
        inputs = shape.channels + 1
        self.first_up = ShiftedConv(inputs, filters, UP)
        self.first_row = ShiftedConv(inputs, filters, (1, 3))
        self.first_left = ShiftedConv(inputs, filters, (2, 1), right=True)
        self.down = nn.ModuleList(_Floor(shape.blocks, filters, dropout, False) for _ in range(count))
        self.smaller = nn.ModuleList(_pair(ShiftedConv, filters, stride=2) for _ in range(count - 1))
        # every map that went down comes back once; a floor below the top one has one more, made by the halving
        self.back = nn.ModuleList(_Floor(shape.blocks + (place > 0), filters, dropout, True) for place in range(count))
        self.larger = nn.ModuleList(_pair(ShiftedDeconv, filters) for _ in range(count - 1))
        self.last = weight_norm(nn.Conv2d(filters, shape.outputs, 1))

    def score(self, pixels: Tensor) -> Tensor:
        """Bits per dimension, exact: nothing is added to the pixels."""
        values = 2 * pixels - 1
        logits = log_probability(values, self.describe(values), self.shape.mixtures)
        return bits_per_dimension(logits.sum(dim=(1, 2)), self.shape.dimension)

    def describe(self, values: Tensor) -> Tensor:
        """The parameters of every pixel's mixture, ``[N, outputs, H, W]``, of values in [-1, 1]."""
        # a channel of ones tells the padding from a grey pixel
        seen = torch.cat([values, torch.ones_like(values[:, :1])], dim=1)
        up = shift_down(self.first_up(seen))
        left = shift_down(self.first_row(seen)) + shift_right(self.first_left(seen))
        ups, lefts = [up], [left]
        for place, floor in enumerate(self.down):
            for block_up, block_left in _blocks(floor):
                up = block_up(up)
                left = block_left(left, up)
                ups.append(up)
                lefts.append(left)
            if place < len(self.smaller):
                up, left = _halves(self.smaller[place], up, left)
                ups.append(up)
                lefts.append(left)
        up, left = ups.pop(), lefts.pop()
        for place, floor in enumerate(self.back):
            for block_up, block_left in _blocks(floor):
                up = block_up(up, ups.pop())
                left = block_left(left, torch.cat([up, lefts.pop()], dim=1))
            if place < len(self.larger):
                up, left = _halves(self.larger[place], up, left)
        made: Tensor = self.last(elu(left))
        return made.to(values.dtype)


def log_probability(values: Tensor, described: Tensor, mixtures: int) -> Tensor:
    """Log-probability of each pixel, all its channels together, ``[N, H, W]``.

    Parameters
    ----------
    values : ``[N, C, H, W]`` in [-1, 1].
    described : of ``PixelCNN.describe``.
    """
    count, channels, height, width = values.shape
    weights, rest = described[:, :mixtures], described[:, mixtures:]
    parts = rest.reshape(count, -1, mixtures, height, width)
    means, log_scales, mixing = parts[:, :channels], parts[:, channels : 2 * channels], parts[:, 2 * channels :]
    known = values.unsqueeze(2).expand(-1, -1, mixtures, -1, -1)
    moved, pair = [means[:, 0]], 0
    for channel in range(1, channels):
        mean = means[:, channel]
        for earlier in range(channel):
            mean = mean + torch.tanh(mixing[:, pair]) * known[:, earlier]
            pair += 1
        moved.append(mean)
    inside = log_bin(known, torch.stack(moved, dim=1), log_scales.clamp(min=LEAST_LOG_SCALE))
    return (inside.sum(dim=1) + weights.log_softmax(dim=1)).logsumexp(dim=1)


def log_bin(values: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
    r"""Log-probability of the bin around each value under a logistic.

    From :math:`S(a) - S(b) = S(a)\,S(-b)\,(1 - e^{b - a})` nothing cancels, however narrow or far away the logistic is;
    a first or last level has one factor only.
    """
    half, inverse = 1 / (LEVELS - 1), (-log_scale).exp()
    upper, lower = (values + half - mean) * inverse, (values - half - mean) * inverse
    below, above = logsigmoid(upper), logsigmoid(-lower)
    inside = below + above + torch.log(-torch.expm1(-2 * half * inverse))
    return torch.where(values < -EDGE, below, torch.where(values > EDGE, above, inside))


def both_signs(values: Tensor) -> Tensor:
    """ELU of the values and of their negatives, side by side."""
    return elu(torch.cat([values, -values], dim=1))


def shift_down(values: Tensor) -> Tensor:
    """Every row where the one above was."""
    return pad(values[:, :, :-1], (0, 0, 1, 0))


def shift_right(values: Tensor) -> Tensor:
    """Every column where the one to the left was."""
    return pad(values[:, :, :, :-1], (1, 0))


def _pair(kind: type[ShiftedConv] | type[ShiftedDeconv], filters: int, **options: int) -> nn.ModuleList:
    return nn.ModuleList(
        [kind(filters, filters, UP, **options), kind(filters, filters, LEFT, right=True, **options)]  # type: ignore[arg-type]
    )


def _halves(pair: nn.Module, up: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    return pair[0](up), pair[1](left)  # type: ignore[index]


def _blocks(floor: nn.Module) -> Sequence[tuple[GatedBlock, GatedBlock]]:
    return list(zip(floor.up, floor.left))  # type: ignore[arg-type]
