"""Frost: ice on the window.

The published sets lay photographs of frost over the image. Those are not ours to give away, so the ice here is
drawn, and figures do not compare with the published ones.
"""

from torch import Tensor

from oodscope.data.corruptions.colour import painted
from oodscope.data.corruptions.plasma import plasma
from oodscope.data.corruptions.randomness import Draws

_ICE = (222, 236, 255)


def frost(x: Tensor, draws: Draws, *, keep: Tensor, ice: Tensor) -> Tensor:
    """``keep`` times the image plus ``ice`` times a sheet of ice."""
    each = (-1, 1, 1, 1)
    sheet = _crystals(draws, keep, *x.shape[2:])[:, None] * painted(_ICE, x)
    return keep.view(each) * x + ice.view(each) * sheet


def _crystals(draws: Draws, like: Tensor, height: int, width: int) -> Tensor:
    """Veins and haze ``[N, height, width]`` in [0, 1].

    The places where a cloud crosses its middle height are curves: drawn sharp, they are veins. Two sets of them, one
    fine and one coarse, stand out of a haze that is a cloud itself.
    """
    coarse, fine, haze = (
        plasma(draws, like.new_full(like.shape, decay), height, width, purpose)
        for purpose, decay in (("coarse", 1.9), ("fine", 1.6), ("haze", 1.7))
    )
    veins = [(1 - (2 * cloud - 1).abs()) ** power for cloud, power in ((coarse, 9), (fine, 5))]
    return (0.55 * haze + 0.5 * veins[0] + 0.35 * veins[1]).clamp(0, 1)
