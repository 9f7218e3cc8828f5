"""A cloud: plasma fractal by the diamond-square algorithm (Fournier, Fussell & Carpenter, CACM 1982)."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws

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
