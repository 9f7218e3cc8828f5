"""Glow: an invertible network and the exact likelihood of images under it."""

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import conv2d, pixel_shuffle, pixel_unshuffle, softplus

from oodscope.models.density.base import LEVELS, DensityModel, DensityShape, bits_per_dimension

OPEN = 2.0
"""Added to the raw scale of a coupling, which then starts at sigmoid(2) = .88."""


class GlowShape(DensityShape):
    """What decides the layers of a ``Glow``.

    Parameters
    ----------
    levels : how often 2 x 2 pixels become channels. The side must be divisible by two as often.
    steps : of actnorm, mixing and coupling in each level.
    width : hidden channels of the network in a coupling; the paper has 512.
    alpha : margin of the logit transform of pixels; 0 centres them and leaves them as they are.
    """

    kind: Literal["glow"] = "glow"
    levels: int = Field(default=3, ge=1)
    steps: int = Field(default=8, ge=1)
    width: int = Field(default=96, ge=1)
    alpha: float = Field(default=0.0, ge=0, lt=0.5)


class ActNorm(nn.Module):
    r"""A shift and a scale of each channel, :math:`y = s(x + b)`.

    They are set by the first batch such that its channels leave with mean 0 and deviation 1, and learnt from then on.
    Log-determinant: :math:`HW \sum \log |s|`.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(channels, 1, 1))
        self.log_scale = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        area = values.shape[2] * values.shape[3]
        return (values + self.shift) * self.log_scale.exp(), area * self.log_scale.sum().expand(len(values))

    def inverse(self, values: Tensor) -> Tensor:
        return values * (-self.log_scale).exp() - self.shift

    @torch.no_grad()
    def initialise(self, values: Tensor) -> None:
        """Take shift and scale from these values."""
        deviation, mean = torch.std_mean(values, dim=(0, 2, 3), correction=0)
        self.shift.copy_(-mean[:, None, None])
        self.log_scale.copy_(-deviation.clamp(min=1e-4).log()[:, None, None])


class InvertibleConv(nn.Module):
    r"""A 1 x 1 convolution that mixes channels, with :math:`W = PL(U + \mathrm{diag}\,s)` and :math:`P` fixed.

    Its log-determinant is :math:`HW \sum \log |s|`, without a decomposition in every pass.

    Parameters
    ----------
    matrix : what it starts with, ``[C, C]``.
    """

    permutation: Tensor
    below: Tensor
    sign: Tensor

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        permutation, lower, upper = torch.linalg.lu(matrix)
        self.register_buffer("permutation", permutation)
        self.register_buffer("below", torch.tril(torch.ones_like(matrix), -1))
        self.register_buffer("sign", upper.diagonal().sign())
        self.lower, self.upper = nn.Parameter(lower), nn.Parameter(upper)
        self.log_diagonal = nn.Parameter(upper.diagonal().abs().log())

    @classmethod
    def rotation(cls, channels: int) -> "InvertibleConv":
        """A random rotation."""
        return cls(torch.linalg.qr(torch.randn(channels, channels)).Q)

    def matrix(self) -> Tensor:
        """:math:`W`."""
        lower = self.lower * self.below + torch.eye(len(self.below), device=self.below.device, dtype=self.below.dtype)
        upper = self.upper * self.below.T + torch.diag(self.sign * self.log_diagonal.exp())
        return self.permutation @ lower @ upper

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        area = values.shape[2] * values.shape[3]
        # bf16 here would be an error of the density, not of a network inside it
        with torch.autocast(values.device.type, enabled=False):
            mixed = conv2d(values, self.matrix()[:, :, None, None])
        return mixed, area * self.log_diagonal.sum().expand(len(values))

    def inverse(self, values: Tensor) -> Tensor:
        return conv2d(values, torch.linalg.inv(self.matrix())[:, :, None, None])


class AffineCoupling(nn.Module):
    r"""One part of the channels moves the other: :math:`z_2 = (y_2 + t(y_1))\,\sigma(r(y_1) + 2)`.

    Log-determinant: :math:`\sum \log \sigma(r + 2)`.

    Parameters
    ----------
    kept : how many channels stay as they are.
    net : from those to shift and raw scale of the others, one after the other along the channels.
    """

    def __init__(self, kept: int, net: nn.Module) -> None:
        super().__init__()
        self.kept = kept
        self.net = net

    @classmethod
    def convolutional(cls, channels: int, width: int) -> "AffineCoupling":
        """With convolutions of 3 x 3, 1 x 1 and 3 x 3, the last of which starts at zero."""
        kept = channels // 2
        last = _zeroed(nn.Conv2d(width, 2 * (channels - kept), 3, padding=1))
        return cls(
            kept,
            nn.Sequential(nn.Conv2d(kept, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 1), nn.ReLU(), last),
        )

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        stays, moves = values[:, : self.kept], values[:, self.kept :]
        shift, raw = self._map(stays)
        moved = (moves + shift) * torch.sigmoid(raw + OPEN)
        return torch.cat([stays, moved], dim=1), -softplus(-raw - OPEN).sum(dim=(1, 2, 3))

    def inverse(self, values: Tensor) -> Tensor:
        stays, moved = values[:, : self.kept], values[:, self.kept :]
        shift, raw = self._map(stays)
        return torch.cat([stays, moved / torch.sigmoid(raw + OPEN) - shift], dim=1)

    def _map(self, stays: Tensor) -> tuple[Tensor, Tensor]:
        shift, raw = self.net(stays).to(stays.dtype).chunk(2, dim=1)
        return shift, raw


class FlowStep(nn.Module):
    """Actnorm, mixing, coupling, in this order."""

    def __init__(self, norm: ActNorm, mix: InvertibleConv, coupling: AffineCoupling) -> None:
        super().__init__()
        self.norm, self.mix, self.coupling = norm, mix, coupling

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Moved values, and the log-determinant of each image."""
        total = values.new_zeros(len(values))
        for part in (self.norm, self.mix, self.coupling):
            values, gained = part(values)
            total = total + gained
        return values, total

    def inverse(self, values: Tensor) -> Tensor:
        """What ``forward`` moved here."""
        return self.norm.inverse(self.mix.inverse(self.coupling.inverse(values)))


class Glow(DensityModel):
    r"""A multi-scale flow: 2 x 2 pixels become channels, steps follow, half of the channels leave; again and again.

    .. math:: \log p(x) = \log \mathcal N(z) + \sum \log |\det J|

    What leaves is Gaussian with mean and deviation read off the channels that go on; the last level's is
    :math:`\mathcal N(0, I)`. Kingma & Dhariwal, NeurIPS 2018.
    """

    shape: GlowShape
    likelihood = True
    initialised: Tensor

    def __init__(self, shape: GlowShape) -> None:
        super().__init__(shape)
        shape.halved(shape.levels, f"a flow of {shape.levels} levels")
        self.steps, self.priors, channels = nn.ModuleList(), nn.ModuleList(), shape.channels
        for level in range(shape.levels):
            channels *= 4
            self.steps.append(nn.ModuleList(_step(channels, shape.width) for _ in range(shape.steps)))
            if level < shape.levels - 1:
                channels //= 2
                self.priors.append(_zeroed(nn.Conv2d(channels, 2 * channels, 3, padding=1)))
        self.register_buffer("initialised", torch.zeros((), dtype=torch.bool))

    def score(self, pixels: Tensor) -> Tensor:
        """Bits per dimension with every pixel at the centre of its bin."""
        return self.placed(pixels, 0.5)

    def placed(self, pixels: Tensor, place: Tensor | float) -> Tensor:
        """Bits per dimension with every pixel at ``place`` in [0, 1) of its bin; gradients reach the pixels."""
        return self._bits(pixels * (LEVELS - 1) + place)

    def dequantised(self, pixels: Tensor, noise: Tensor) -> Tensor:
        """Bits per dimension of pixels that lie in their bins at ``noise`` in [0, 1): what is trained and reported.

        Its mean over the noise bounds the code length of the levels from above.
        """
        return self._bits((pixels * (LEVELS - 1)).round() + noise)

    def _bits(self, levels: Tensor) -> Tensor:
        density = self.log_density(levels / LEVELS)
        return bits_per_dimension(density, self.shape.dimension) + math.log2(LEVELS)

    def log_density(self, values: Tensor) -> Tensor:
        """Of values in [0, 1), in nats."""
        latents, contexts, total = self._pass(values)
        last = latents[-1]
        total = total + gaussian(last, torch.zeros_like(last), torch.zeros_like(last))
        for prior, context, left in zip(self.priors, contexts, latents):
            mean, log_scale = prior(context).to(left.dtype).chunk(2, dim=1)
            total = total + gaussian(left, mean, log_scale)
        return total

    def encode(self, values: Tensor) -> tuple[list[Tensor], Tensor]:
        """What leaves each level, and the log-determinant of the whole map; ``decode`` goes back."""
        latents, _, total = self._pass(values)
        return latents, total

    def decode(self, latents: list[Tensor]) -> Tensor:
        """The values in [0, 1) that ``encode`` took apart."""
        values = latents[-1]
        for level in reversed(range(len(self.steps))):
            if level < len(self.priors):
                values = torch.cat([values, latents[level]], dim=1)
            for step in reversed(_steps(self.steps[level])):
                values = step.inverse(values)
            values = pixel_shuffle(values, 2)
        if not self.shape.alpha:
            return values + 0.5
        return (torch.sigmoid(values) - self.shape.alpha) / (1 - 2 * self.shape.alpha)

    @torch.no_grad()
    def initialise(self, pixels: Tensor, noise: Tensor) -> None:
        """Set every actnorm by a first batch, dequantised as in training; once, whoever asks again."""
        if not self.initialised:
            self._pass(((pixels * (LEVELS - 1)).round() + noise) / LEVELS, initialise=True)
            self.initialised.fill_(True)

    def _pass(self, values: Tensor, initialise: bool = False) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """What leaves each level, what goes on there, and the log-determinant."""
        values, total = spread(values, self.shape.alpha)
        latents: list[Tensor] = []
        contexts: list[Tensor] = []
        for level, steps in enumerate(self.steps):
            values = pixel_unshuffle(values, 2)
            for step in _steps(steps):
                if initialise:
                    step.norm.initialise(values)
                values, gained = step(values)
                total = total + gained
            if level < len(self.priors):
                values, left = values.chunk(2, dim=1)
                latents.append(left)
                contexts.append(values)
        return [*latents, values], contexts, total


def spread(values: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    r"""Values in [0, 1) on the whole line, :math:`y = \log p - \log(1 - p)` with :math:`p = \alpha + (1 - 2\alpha)x`.

    The log-determinant of each image is :math:`\sum \log(1 - 2\alpha) - \log p - \log(1 - p)`. Without a margin they
    are centred only.
    """
    if not alpha:
        return values - 0.5, values.new_zeros(len(values))
    inner = alpha + (1 - 2 * alpha) * values
    log_inside, log_outside = inner.log(), torch.log1p(-inner)
    gained = math.log1p(-2 * alpha) - log_inside - log_outside
    return log_inside - log_outside, gained.sum(dim=(1, 2, 3))


def gaussian(values: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
    """Log-density of each image, summed over its numbers."""
    standard = (values - mean) * (-log_scale).exp()
    return (-0.5 * standard.square() - log_scale - 0.5 * math.log(2 * math.pi)).sum(dim=(1, 2, 3))


def _step(channels: int, width: int) -> FlowStep:
    return FlowStep(ActNorm(channels), InvertibleConv.rotation(channels), AffineCoupling.convolutional(channels, width))


def _steps(level: nn.Module) -> list[FlowStep]:
    return list(level)  # type: ignore[call-overload, no-any-return]


def _zeroed(layer: nn.Conv2d) -> nn.Conv2d:
    """With weights and bias of zero."""
    nn.init.zeros_(layer.weight)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer
