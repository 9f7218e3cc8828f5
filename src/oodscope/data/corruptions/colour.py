"""Colour: brightness and saturation in HSV, contrast about the mean.

With the hue fixed, RGB is linear in value and in saturation:
:math:`c = V (1 - S\\, k_c)` with :math:`V = \\max c`, :math:`S = (V - \\min c) / V` and :math:`k_c` of the hue alone.
So neither needs the hue.
"""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws

_EACH = (-1, 1, 1, 1)
_LUMA = (0.299, 0.587, 0.114)


def luma(x: Tensor) -> Tensor:
    """The grey ``[N, 1, H, W]`` of an image of one or three channels."""
    return x if x.shape[1] == 1 else (x * x.new_tensor(_LUMA).view(1, 3, 1, 1)).sum(dim=1, keepdim=True)


def painted(colour: tuple[int, int, int], x: Tensor) -> Tensor:
    """A colour, given in levels, for images like ``x``: ``[1, C, 1, 1]`` in [0, 1]."""
    paint = x.new_tensor(colour).view(1, 3, 1, 1) / 255
    return luma(paint) if x.shape[1] == 1 else paint


def brightness(x: Tensor, draws: Draws, *, lift: Tensor) -> Tensor:
    """The value of HSV raised by ``lift``; what was black becomes grey."""
    value = x.amax(dim=1, keepdim=True)
    raised = (value + lift.view(_EACH)).clamp(max=1)
    return torch.where(value > 0, x * (raised / value.clamp(min=1e-9)), raised)


def saturate(x: Tensor, draws: Draws, *, factor: Tensor, lift: Tensor) -> Tensor:
    """The saturation of HSV times ``factor`` plus ``lift``.

    Grey has no hue and counts as red, as in the published sets, so that ``lift`` tints it. An image of one
    channel has no saturation and stays as it is.
    """
    if x.shape[1] == 1:
        return x
    value = x.amax(dim=1, keepdim=True)
    spread = value - x.amin(dim=1, keepdim=True)
    stronger = (factor.view(_EACH) * spread / value.clamp(min=1e-9) + lift.view(_EACH)).clamp(0, 1)
    red = x.new_tensor([0.0, 1.0, 1.0]).view(1, 3, 1, 1)
    distance = torch.where(spread > 0, (value - x) / spread.clamp(min=1e-9), red)
    return value * (1 - stronger * distance)


def contrast(x: Tensor, draws: Draws, *, slope: Tensor) -> Tensor:
    """Distances to the mean of each channel times ``slope``."""
    mean = x.mean(dim=(2, 3), keepdim=True)
    return mean + slope.view(_EACH) * (x - mean)
