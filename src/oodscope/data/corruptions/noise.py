"""Noise: of electronics, of light itself, of dead pixels."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions.poisson import poisson

_EACH = (-1, 1, 1, 1)


def gaussian_noise(x: Tensor, draws: Draws, *, deviation: Tensor) -> Tensor:
    r""":math:`x + \sigma \varepsilon` with standard normal :math:`\varepsilon` for every pixel and channel."""
    return x + deviation.view(_EACH) * draws.normal("grain", *x.shape[1:])


def speckle_noise(x: Tensor, draws: Draws, *, deviation: Tensor) -> Tensor:
    r""":math:`x + x \sigma \varepsilon`: black stays black."""
    return x + x * deviation.view(_EACH) * draws.normal("grain", *x.shape[1:])


def shot_noise(x: Tensor, draws: Draws, *, variance: Tensor) -> Tensor:
    r""":math:`K / c` where :math:`K \sim \mathrm{Poisson}(c x)` photons arrive;
    ``variance``, of white, is :math:`1/c`."""
    each = variance.view(_EACH)
    return poisson(x.detach() / each, draws.uniform("photons", *x.shape[1:])) * each


def impulse_noise(x: Tensor, draws: Draws, *, amount: Tensor) -> Tensor:
    """A share ``amount`` of all values is lost; each becomes black or white with equal odds."""
    lost = draws.uniform("lost", *x.shape[1:]) <= amount.view(_EACH)
    white = draws.uniform("white", *x.shape[1:]) <= 0.5
    return torch.where(lost, white.to(x.dtype), x)
