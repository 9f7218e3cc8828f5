"""Motion blur: a Gaussian tail along one direction, as ImageMagick draws it."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws

_NOTHING = 1e-11
"""Weights below this move no level."""


def motion_blur(x: Tensor, draws: Draws, *, radius: Tensor, sigma: Tensor) -> Tensor:
    """A camera that moves at an angle between -45 and 45 degrees."""
    angle = 90 * draws.uniform("angle") - 45
    return smeared(x, radius, sigma, angle)


def smeared(x: Tensor, radius: Tensor, sigma: Tensor, angle: Tensor) -> Tensor:
    r"""The tail of ``x [N, C, H, W]`` along ``angle`` (degrees, clockwise from the right).

    .. math:: y(p) = \sum_{i=0}^{2 \lceil r \rceil} w_i\, x(p + o_i), \qquad w_i \propto e^{-i^2 / 2\sigma^2}

    with :math:`o_i` the pixel nearest to :math:`i (\cos\theta, \sin\theta)`. One-sided, hence the image also moves a
    little. Beyond the edge lies its last pixel.

    Parameters
    ----------
    radius : half the number of taps.
    sigma : of the tail, in pixels; 0 leaves the image as it is.
    """
    width = 2 * radius.ceil() + 1
    tap = torch.arange(int(width.max()), device=x.device)
    weight = torch.exp(-0.5 * (tap / sigma.clamp(min=1e-9)[:, None]) ** 2) * (tap < width[:, None])
    weight = weight / weight.sum(dim=1, keepdim=True)
    turn = torch.deg2rad(angle)[:, None]
    right, down = ((tap * part - 0.5).ceil().long() for part in (turn.cos(), turn.sin()))
    height, length = x.shape[2:]
    rows, columns = (torch.arange(side, device=x.device) for side in (height, length))
    pixels = x.flatten(2)
    total = torch.zeros_like(x)
    for i in (weight > _NOTHING).any(dim=0).nonzero().squeeze(1).tolist():
        row = (rows + down[:, i, None]).clamp(0, height - 1)
        column = (columns + right[:, i, None]).clamp(0, length - 1)
        place = (row[:, :, None] * length + column[:, None, :]).flatten(1)
        seen = pixels.gather(2, place[:, None].expand_as(pixels)).view_as(x)
        total = total + weight[:, i, None, None, None] * seen
    return total
