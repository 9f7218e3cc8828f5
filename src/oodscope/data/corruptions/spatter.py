"""Spatter: drops of water, then mud, on the lens."""

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from oodscope.data.addressed import Draws
from oodscope.data.corruptions import separable
from oodscope.data.corruptions.colour import painted

_TAN_22 = 13573 / 2**15
"""The tangent of 22.5 degrees, in OpenCV's precision."""

_MOVES = ((0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.4), (1, -1, 1.4), (1, 2, 2.1969), (1, -2, 2.1969), (2, 1, 2.1969),
          (2, -1, 2.1969))  # fmt: skip
"""Steps of the 5 x 5 chamfer mask and their lengths; each goes both ways."""


def canny(levels: Tensor, low: float, high: float) -> Tensor:
    """Edges (Canny, TPAMI 1986) of ``levels [N, 1, H, W]``, a boolean map.

    A pixel is an edge if its gradient (Sobel, sum of absolute parts) exceeds ``low`` and those of both neighbours
    across the edge, and if a chain of such pixels joins it to one whose gradient exceeds ``high``.
    """
    across, down = _sobel(levels)
    size = across.abs() + down.abs()
    padded = pad(size, (1, 1, 1, 1))
    height, width = levels.shape[2:]

    def beside(dy: int, dx: int) -> Tensor:
        return padded[:, :, 1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]

    flat = down.abs() < across.abs() * _TAN_22
    steep = down.abs() > across.abs() * (_TAN_22 + 2)
    falling = (across < 0) != (down < 0)
    thin = torch.where(
        flat,
        (size > beside(0, -1)) & (size >= beside(0, 1)),
        torch.where(
            steep,
            (size > beside(-1, 0)) & (size >= beside(1, 0)),
            torch.where(
                falling,
                (size > beside(-1, 1)) & (size > beside(1, -1)),
                (size > beside(-1, -1)) & (size > beside(1, 1)),
            ),
        ),
    ) & (size > low)  # fmt: skip
    edges = thin & (size > high)
    while True:
        joined = thin & (max_pool2d(edges.float(), 3, 1, 1) > 0)
        if torch.equal(joined, edges):
            return edges
        edges = joined


def distance_to(edges: Tensor, limit: float) -> Tensor:
    """The chamfer distance of every pixel to the nearest edge, at most ``limit``; ``limit`` where there is none."""
    distance = torch.where(edges, 0.0, limit).to(torch.float64)
    height, width = edges.shape[2:]
    while True:
        padded = pad(distance, (2, 2, 2, 2), value=limit)
        shorter = distance
        for dy, dx, length in _MOVES:
            for sign in (1, -1):
                top, left = 2 + sign * dy, 2 + sign * dx
                shorter = torch.minimum(shorter, padded[:, :, top : top + height, left : left + width] + length)
        if torch.equal(shorter, distance):
            return distance
        distance = shorter


def _sobel(levels: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient to the right and down."""
    padded = pad(levels, (1, 1, 1, 1), mode="replicate")
    tall = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]
    wide = padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]
    return tall[..., 2:] - tall[..., :-2], wide[:, :, 2:] - wide[:, :, :-2]


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
