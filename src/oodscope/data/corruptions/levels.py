"""From numbers in [0, 1] to the 256 levels of a pixel, and back."""

import torch
from torch import Tensor

_SLACK = 1e-6


def cut(x: Tensor) -> Tensor:
    """The level below, as a cast to bytes gives it; a level missed by a rounding error still counts."""
    return (x.clamp(0, 1) * 255 + _SLACK).floor()


def nearest(x: Tensor) -> Tensor:
    """The nearest level."""
    return (x.clamp(0, 1) * 255 + 0.5 + _SLACK).floor()


def as_unit(images: Tensor) -> Tensor:
    """float64 in [0, 1], from bytes or from floats in [0, 1]."""
    return images.to(torch.float64) / 255 if images.dtype == torch.uint8 else images.to(torch.float64)
