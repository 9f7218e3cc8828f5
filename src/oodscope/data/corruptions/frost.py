"""Frost: ice on the window.

The published sets lay photographs of frost over the image. Those are not ours to give away, so the ice here is
drawn, and figures do not compare with the published ones.
"""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions.colour import painted
from oodscope.data.corruptions.plasma import plasma

_ICE = (222, 236, 255)
_LAYERS = 3


def frost(x: Tensor, draws: Draws, *, keep: Tensor, ice: Tensor) -> Tensor:
    """``keep`` times the image plus ``ice`` times a sheet of ice."""
    each = (-1, 1, 1, 1)
    sheet = _crystals(draws, keep, *x.shape[2:])[:, None] * painted(_ICE, x)
    return keep.view(each) * x + ice.view(each) * sheet


def _crystals(draws: Draws, like: Tensor, height: int, width: int) -> Tensor:
    """Veins and grains ``[N, height, width]`` in [0, 1], where a haze is thick.

    The places where a cloud crosses its middle height are curves: drawn sharp, they are veins of ice, and drawn
    on a rough cloud, grains.
    """

    def cloud(purpose: str, decay: float) -> Tensor:
        return plasma(draws, torch.full_like(like, decay), height, width, purpose)

    def curves(purpose: str, decay: float, sharpness: int) -> Tensor:
        return (1 - (2 * cloud(purpose, decay) - 1).abs()) ** sharpness

    haze = cloud("haze", 1.7)
    veins = torch.stack([curves(f"veins {layer}", 1.45, 6) for layer in range(_LAYERS)]).amax(dim=0)
    grains = curves("grains", 1.25, 3)
    return (0.15 + 0.5 * haze * grains + (0.25 + 0.5 * haze) * veins).clamp(0, 1)
