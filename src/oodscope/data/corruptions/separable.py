"""Linear maps that act on rows and columns alike: blurring and magnifying are two matrix products.

A matrix ``[N, side, side]`` holds one map per image, so images of different severity share a batch. Everything is
float64: the order in which a product is summed then never shows in a level.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Fold = Callable[[Tensor, int], Tensor]


def apply(matrices: Callable[[int], Tensor], x: Tensor) -> Tensor:
    """``matrices(side)`` applied to both directions of ``x [N, C, H, W]``."""
    rows, columns = (matrices(side)[:, None] for side in x.shape[2:])
    return rows @ x @ columns.transpose(-1, -2)


def nearest(position: Tensor, side: int) -> Tensor:
    """Beyond the edge lies its last pixel: ``a a | a b c | c c``."""
    return position.clamp(0, side - 1)


def symmetric(position: Tensor, side: int) -> Tensor:
    """Beyond the edge lies the mirror image: ``b a | a b c | c b``."""
    folded = position % (2 * side)
    return torch.minimum(folded, 2 * side - 1 - folded)


def mirror(position: Tensor, side: int) -> Tensor:
    """Beyond the edge lies the mirror image without the edge itself: ``c b | a b c | b a``."""
    folded = position % (2 * side - 2)
    return torch.minimum(folded, 2 * side - 2 - folded)


def gaussian(
    sigma: Tensor, side: int, fold: Fold = nearest, truncate: float = 4.0, largest: float | None = None
) -> Tensor:
    r"""The matrices of a Gaussian filter with weights :math:`\propto e^{-d^2 / 2\sigma^2}` up to ``truncate * sigma``.

    Parameters
    ----------
    sigma : one per image; 0 is the identity.
    fold : what lies beyond the edge.
    largest : a bound of ``sigma``; without one the device is asked, which stops it.
    """
    radius = (truncate * sigma + 0.5).floor()
    reach = int(radius.max() if largest is None else truncate * largest + 0.5)
    offset = torch.arange(-reach, reach + 1, device=sigma.device)
    weight = torch.exp(-0.5 * (offset / sigma.clamp(min=1e-9)[:, None]) ** 2) * (offset.abs() <= radius[:, None])
    weight = weight / weight.sum(dim=1, keepdim=True)
    source = fold(torch.arange(side, device=sigma.device)[:, None] + offset, side)
    matrix = sigma.new_zeros(len(sigma), side, side)
    shape = (len(sigma), *source.shape)
    return matrix.scatter_add_(2, source.expand(shape), weight[:, None].expand(shape))


def blur(x: Tensor, sigma: Tensor, fold: Fold = nearest, truncate: float = 4.0, largest: float | None = None) -> Tensor:
    """Each image of ``x [N, C, H, W]`` under its own Gaussian filter."""
    return apply(lambda side: gaussian(sigma, side, fold, truncate, largest), x)


def zoom(factor: Tensor, side: int) -> Tensor:
    """The matrices that magnify about the centre by linear interpolation and keep the size.

    The central ``ceil(side / factor)`` pixels are stretched, corners on corners, to ``factor`` times their
    number, rounded, and the middle ``side`` of those are kept.
    """
    crop = (side / factor).ceil()
    stretched = (crop * factor).round()
    top = ((side - crop) / 2).floor()[:, None]
    place = torch.arange(side, device=factor.device) + ((stretched - side) / 2).floor()[:, None]
    place = place * ((crop - 1) / (stretched - 1).clamp(min=1))[:, None]
    lower = torch.minimum(place.floor(), crop[:, None] - 1)
    share = place - lower
    upper = torch.minimum(lower + 1, crop[:, None] - 1)
    matrix = factor.new_zeros(len(factor), side, side)
    for pixel, weight in ((lower, 1 - share), (upper, share)):
        matrix.scatter_add_(2, (top + pixel).long()[..., None], weight[..., None])
    return matrix
