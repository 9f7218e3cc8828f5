"""Poisson counts from uniform numbers, by inverting the distribution function."""

import torch
from torch import Tensor


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
