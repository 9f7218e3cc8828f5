"""Weather: fog, frost and snow before the scene."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions import separable
from oodscope.data.corruptions.blur import smeared
from oodscope.data.corruptions.colour import luma, painted
from oodscope.data.corruptions.levels import cut

_ROUGHNESS = 100.0


def plasma(draws: Draws, decay: Tensor, height: int, width: int, purpose: str = "plasma") -> Tensor:
    """Clouds ``[N, height, width]`` from 0 to 1 (on the map they are cut from).

    The map wraps around; its side is the power of two that covers the image. Every pass fills the middles of the
    squares, then of the diamonds between, by the mean of four neighbours plus uniform noise. Noise is drawn from
    ``roughness ** 2 * U(-1, 1)``, and the roughness falls by the factor ``decay`` per pass.
    """
    side = 2 ** (max(height, width) - 1).bit_length()
    cloud = decay.new_zeros(len(decay), side, side)
    roughness = torch.full_like(decay, _ROUGHNESS)[:, None, None]
    step = side
    while step >= 2:
        half = step // 2
        count = side // step

        def filled(four: Tensor, which: str, step: int = step, count: int = count) -> Tensor:
            noise = 2 * draws.uniform(f"{purpose} {which} {step}", count, count) - 1
            return four / 4 + roughness.square() * noise  # noqa: B023  # called within this pass

        corners = cloud[:, ::step, ::step]
        columns = corners + corners.roll(-1, 1)
        cloud[:, half::step, half::step] = filled(columns + columns.roll(-1, 2), "square")
        middles = cloud[:, half::step, half::step]
        cloud[:, ::step, half::step] = filled(middles + middles.roll(1, 1) + corners + corners.roll(-1, 2), "right")
        cloud[:, half::step, ::step] = filled(middles + middles.roll(1, 2) + corners + corners.roll(-1, 1), "below")
        step = half
        roughness = roughness / decay[:, None, None]
    cloud = cloud - cloud.amin(dim=(1, 2), keepdim=True)
    return (cloud / cloud.amax(dim=(1, 2), keepdim=True))[:, :height, :width]


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
    threshold : noise below it is not a flake.
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


# Frost: ice on the window.
#
# The published sets lay photographs of frost over the image. Those are not ours to give away, so the ice here is
# drawn, and figures do not compare with the published ones.


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


def fog(x: Tensor, draws: Draws, *, thickness: Tensor, decay: Tensor) -> Tensor:
    r""":math:`(x + t f)\, m / (m + t)` with cloud :math:`f`, thickness :math:`t` and :math:`m = \max x`.

    The scale keeps the brightest pixel possible where it was, so fog takes contrast rather than adding light.
    """
    brightest = x.amax(dim=(1, 2, 3), keepdim=True)
    thick = thickness.view(-1, 1, 1, 1)
    return (x + thick * plasma(draws, decay, *x.shape[2:])[:, None]) * brightest / (brightest + thick)
