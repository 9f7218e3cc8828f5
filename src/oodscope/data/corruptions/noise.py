"""Noise: of electronics, of light itself, of dead pixels."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws


def poisson(rate: Tensor, uniform: Tensor) -> Tensor:
    r"""The smallest :math:`k` with :math:`P(K \le k) \ge u`, for each rate and uniform number; exact.

    :math:`P(K \le k)` is the regularised incomplete gamma function :math:`Q(k + 1, \lambda)`. The search starts from
    the Cornish-Fisher expansion of the quantile, which is right or next to right, and walks.
    """
    z: Tensor = torch.special.ndtri(uniform)
    guess = (rate + rate.sqrt() * z + (z.square() - 1) / 6).floor().clamp(min=0)
    count = guess.flatten()
    rates, levels = rate.flatten(), uniform.flatten()
    enough = _below(count, rates) >= levels
    rows = (~enough).nonzero().squeeze(1)
    while len(rows):
        count[rows] += 1
        rows = rows[_below(count[rows], rates[rows]) < levels[rows]]
    rows = (enough & (count > 0)).nonzero().squeeze(1)
    while len(rows):
        rows = rows[(count[rows] > 0) & (_below(count[rows] - 1, rates[rows]) >= levels[rows])]
        count[rows] -= 1
    return count.view_as(rate)


def _below(count: Tensor, rate: Tensor) -> Tensor:
    """The probability of at most ``count`` events."""
    probability: Tensor = torch.special.gammaincc(count + 1, rate)
    return probability


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
