"""Elastic transform (Simard, Steinkraus & Platt, ICDAR 2003): stretched, then rippled."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions import separable


def elastic_transform(x: Tensor, draws: Draws, *, ripple: Tensor, smoothness: Tensor, stretch: Tensor) -> Tensor:
    """An affine map drawn at random, then displacements that are smooth noise.

    All parameters are shares of the shorter side.

    Parameters
    ----------
    ripple : factor of the smoothed noise.
    smoothness : deviation of the Gaussian filter that smooths the uniform noise.
    stretch : how far, at most, each of three corners of a square in the middle is moved in each direction.
    """
    side = min(x.shape[2:])
    stretched = sample(x, *_affine(draws, stretch * side, *x.shape[2:]), separable.mirror)
    noise = 2 * draws.uniform("ripples", 2, *x.shape[2:]) - 1
    smooth = separable.blur(noise, smoothness * side, separable.symmetric, truncate=3.0)
    down, right = (smooth * (ripple * side).view(-1, 1, 1, 1)).unbind(1)
    rows, columns = _grid(x)
    return sample(stretched, rows + down, columns + right, separable.symmetric)


def sample(x: Tensor, rows: Tensor, columns: Tensor, fold: separable.Fold) -> Tensor:
    """``x [N, C, H, W]`` between its pixels, by linear interpolation, at ``rows`` and ``columns [N, H, W]``."""
    height, width = x.shape[2:]
    top, left = rows.floor(), columns.floor()
    down, right = (rows - top)[:, None], (columns - left)[:, None]
    pixels = x.flatten(2)

    def at(row: Tensor, column: Tensor) -> Tensor:
        place = fold(row.long(), height) * width + fold(column.long(), width)
        return pixels.gather(2, place.flatten(1)[:, None].expand_as(pixels)).view_as(x)

    upper = (1 - right) * at(top, left) + right * at(top, left + 1)
    lower = (1 - right) * at(top + 1, left) + right * at(top + 1, left + 1)
    return (1 - down) * upper + down * lower


def _affine(draws: Draws, reach: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Where each pixel comes from when three corners of a central square move by up to ``reach`` pixels."""
    middle = torch.tensor([width // 2, height // 2], dtype=torch.float64, device=reach.device)
    arm = min(height, width) // 3
    corners = middle + arm * middle.new_tensor([[1, 1], [1, -1], [-1, -1]])
    moved = corners + (2 * draws.uniform("corners", 3, 2) - 1) * reach[:, None, None]
    back = torch.linalg.solve(torch.cat([moved, torch.ones_like(moved[..., :1])], dim=2), corners.expand_as(moved))
    rows = torch.arange(height, device=reach.device, dtype=torch.float64)[:, None]
    columns = torch.arange(width, device=reach.device, dtype=torch.float64)
    across, along = (
        columns * back[:, 0, axis, None, None] + rows * back[:, 1, axis, None, None] + back[:, 2, axis, None, None]
        for axis in (1, 0)
    )
    return across, along


def _grid(x: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = (torch.arange(side, device=x.device, dtype=x.dtype) for side in x.shape[2:])
    return rows[:, None], columns
