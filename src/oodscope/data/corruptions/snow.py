"""Snow: flakes blown by wind before a whiter scene."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions import separable
from oodscope.data.corruptions.colour import luma
from oodscope.data.corruptions.levels import cut
from oodscope.data.corruptions.motion import smeared

_EACH = (-1, 1, 1, 1)


def snow(
    x: Tensor,
    draws: Draws,
    *,
    mean: Tensor,
    deviation: Tensor,
    zoom: Tensor,
    threshold: Tensor,
    radius: Tensor,
    sigma: Tensor,
    keep: Tensor,
) -> Tensor:
    """Flakes are the peaks of normal noise, magnified, blown, and laid on twice, once upside down.

    Parameters
    ----------
    mean, deviation : of the noise.
    zoom : how far it is magnified: the size of a flake.
    threshold : noise below it is no flake.
    radius, sigma : of the blur along the wind, which blows at an angle between -135 and -45 degrees.
    keep : the share of the scene that is not whitened.
    """
    noise = mean.view(_EACH) + deviation.view(_EACH) * draws.normal("flakes", 1, *x.shape[2:])
    large = separable.apply(lambda side: separable.zoom(zoom, side), noise)
    flakes = cut(torch.where(large < threshold.view(_EACH), 0.0, large)) / 255
    wind = 90 * draws.uniform("wind") - 135
    layer = cut(smeared(flakes, radius, sigma, wind)) / 255
    white = torch.maximum(x, 1.5 * luma(x) + 0.5)
    kept = keep.view(_EACH)
    return kept * x + (1 - kept) * white + layer + layer.flip(2, 3)
