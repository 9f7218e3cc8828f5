"""Spatter: drops of water, then mud, on the lens."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from oodscope.data.addressed import Draws
from oodscope.data.corruptions import separable
from oodscope.data.corruptions.colour import painted
from oodscope.data.corruptions.edges import canny, distance_to

_WATER = (175, 238, 238)
_MUD = (63, 42, 20)
_FAR = 20.0
_LIGHT = ((-2.0, -1.0, 0.0), (-1.0, 1.0, 1.0), (0.0, 1.0, 2.0))
"""Light from the upper left: the relief of a drop."""


def spatter(
    x: Tensor,
    draws: Draws,
    *,
    mean: Tensor,
    deviation: Tensor,
    sigma: Tensor,
    threshold: Tensor,
    strength: Tensor,
    mud: Tensor,
) -> Tensor:
    """Liquid lies where smoothed noise exceeds a threshold.

    Parameters
    ----------
    mean, deviation : of the normal noise.
    sigma : of the Gaussian filter that smooths it: the size of a drop.
    threshold : below it the lens is dry.
    strength : of water, its opacity; of mud, the deviation of the filter that rounds the stains.
    mud : 1 for mud, 0 for water.
    """
    each = (-1, 1, 1, 1)
    noise = mean.view(each) + deviation.view(each) * draws.normal("liquid", 1, *x.shape[2:])
    smooth = separable.blur(noise, sigma)
    wet = smooth >= threshold.view(each)
    liquid = torch.where(wet, smooth, 0.0)
    muddy = mud.bool()
    # both liquids are drawn only where a batch holds both
    out = x.clone()
    if (~muddy).any():
        drops = water(liquid[~muddy]) * strength[~muddy].view(each)
        out[~muddy] = x[~muddy] + drops * painted(_WATER, x)
    if muddy.any():
        stains = separable.blur((liquid > threshold.view(each))[muddy].to(x.dtype), strength[muddy])
        stains = torch.where(stains < 0.8, 0.0, stains)
        out[muddy] = x[muddy] * (1 - stains) + stains * painted(_MUD, x)
    return out


def water(liquid: Tensor) -> Tensor:
    """How much light drops ``[N, 1, H, W]`` add, at most 1: relief of the distance to their outline."""
    levels = (liquid.clamp(0, 1) * 255 + 1e-6).floor()
    distance = distance_to(canny(levels, 50, 150), _FAR)
    relief = _equalised((_mean3(distance) + 1e-6).floor())
    relief = _correlated(relief, _LIGHT).clamp(0, 255)
    light = levels * (_mean3(relief) + 0.5).floor()
    return light / light.amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-9)


def _correlated(x: Tensor, kernel: tuple[tuple[float, ...], ...]) -> Tensor:
    """``x [N, 1, H, W]`` under a 3 x 3 kernel; beyond the edge it is mirrored."""
    padded = pad(x, (1, 1, 1, 1), mode="reflect")
    height, width = x.shape[2:]
    total = torch.zeros_like(x)
    for down, row in enumerate(kernel):
        for right, weight in enumerate(row):
            total = total + weight * padded[:, :, down : down + height, right : right + width]
    return total


def _mean3(x: Tensor) -> Tensor:
    return _correlated(x, ((1.0,) * 3,) * 3) / 9


def _equalised(levels: Tensor) -> Tensor:
    """Levels spread so that each range of them holds as many pixels; an image of one level stays."""
    flat = levels.flatten(1).long()
    count = flat.new_zeros(len(flat), 256).scatter_add_(1, flat, torch.ones_like(flat))
    total = flat.shape[1]
    lowest = count.gather(1, flat.amin(dim=1, keepdim=True))
    spread = (count.cumsum(dim=1) - lowest) * (255.0 / (total - lowest).clamp(min=1))
    table = torch.where(lowest == total, torch.arange(256, device=levels.device), spread.round().clamp(min=0))
    return table.to(levels.dtype).gather(1, flat).view_as(levels)
