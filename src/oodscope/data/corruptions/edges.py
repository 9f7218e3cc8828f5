"""Edges and the distance to them, for batches: Canny's detector and a chamfer distance, as OpenCV defines them."""

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

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
