"""Pixelate: shrunk and enlarged by Pillow's box filter."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions.levels import nearest

_FIXED = 2.0**22
"""Pillow's weights are multiples of its reciprocal."""


def pixelate(x: Tensor, draws: Draws, *, share: Tensor) -> Tensor:
    """``share`` of the side's pixels remain; columns are averaged first, and both times levels are rounded.

    Equal to Pillow at the published sizes and shares. At some odd sizes the centre of a pixel lies on the border of
    two cells, and may count to the other one.
    """
    rows, columns = (_cells((side * share).floor().clamp(min=1), side)[:, None] for side in x.shape[2:])
    levels = nearest(x)
    levels = (levels @ columns.transpose(-1, -2) + 0.5).floor()
    return (rows @ levels + 0.5).floor() / 255


def _cells(count: Tensor, side: int) -> Tensor:
    """Matrices that replace each pixel by the mean of its cell; ``count`` cells of equal width, centres decide."""
    pixel = torch.arange(side, device=count.device) + 0.5
    width = (side / count)[:, None]
    cell = (pixel / width).floor()[:, :, None]
    first = (cell * width[:, None] + 0.5).floor()
    last = ((cell + 1) * width[:, None] + 0.5).floor()
    inside = ((pixel - 0.5 >= first) & (pixel - 0.5 < last)).to(count.dtype)
    return (inside / inside.sum(dim=2, keepdim=True) * _FIXED).round() / _FIXED
