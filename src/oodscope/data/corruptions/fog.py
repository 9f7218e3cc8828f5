"""Fog: a cloud before the scene."""

from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions.plasma import plasma


def fog(x: Tensor, draws: Draws, *, thickness: Tensor, decay: Tensor) -> Tensor:
    r""":math:`(x + t f)\, m / (m + t)` with cloud :math:`f`, thickness :math:`t` and :math:`m = \max x`.

    The scale keeps the brightest pixel possible where it was, so fog takes contrast rather than adding light.
    """
    brightest = x.amax(dim=(1, 2, 3), keepdim=True)
    thick = thickness.view(-1, 1, 1, 1)
    return (x + thick * plasma(draws, decay, *x.shape[2:])[:, None]) * brightest / (brightest + thick)
