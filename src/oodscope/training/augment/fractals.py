"""Fractals drawn by iterated function systems: pictures to mix with that come from no data set."""

from functools import cache

import torch
from torch import Tensor

_MAPS, _POINTS, _STEPS, _SETTLE = 4, 1024, 48, 8


@cache
def draw_fractals(count: int, size: int, seed: int, device: str) -> Tensor:
    """``count`` colour pictures, uint8 ``[count, 3, size, size]``, equal for equal arguments.

    Each is the attractor of four random contractions of the plane: points are moved by one of them at a time, and what
    they visit is coloured by the map that moved them and its history. They are drawn on the CPU, once in a process.
    """
    draws = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=draws)

    contractions = 1.6 * uniform(count, _MAPS, 2, 2) - 0.8
    # a map that stretches would leave the picture: its largest stretch is at most the sum of squares' root
    stretch = contractions.square().sum(dim=(2, 3), keepdim=True).sqrt().clamp(min=1e-3)
    contractions = contractions * ((0.35 + 0.55 * uniform(count, _MAPS, 1, 1)) / stretch)
    shifts, colours = 2 * uniform(count, _MAPS, 2) - 1, uniform(count, _MAPS, 3)
    points, tints = 2 * uniform(count, _POINTS, 2) - 1, uniform(count, _POINTS, 3)
    sums, visits = torch.zeros(count, size * size, 3), torch.zeros(count, size * size, 1)
    rows = torch.arange(count).view(-1, 1)
    for step in range(_STEPS):
        chosen = (uniform(count, _POINTS) * _MAPS).long()
        points = (contractions[rows, chosen] @ points.unsqueeze(3)).squeeze(3) + shifts[rows, chosen]
        tints = (tints + colours[rows, chosen]) / 2
        if step < _SETTLE:
            continue
        if step == _SETTLE:
            low, high = points.amin(dim=1, keepdim=True), points.amax(dim=1, keepdim=True)
        place = ((points - low) / (high - low).clamp(min=1e-6) * size).long().clamp(0, size - 1)
        cells = place[:, :, 1] * size + place[:, :, 0]
        sums.scatter_add_(1, cells.unsqueeze(2).expand(-1, -1, 3), tints)
        visits.scatter_add_(1, cells.unsqueeze(2), torch.ones(count, _POINTS, 1))
    bright = visits.log1p() / visits.amax(dim=1, keepdim=True).log1p()
    pictures = (sums / visits.clamp(min=1) * bright.sqrt()).transpose(1, 2).reshape(count, 3, size, size)
    return (255 * pictures).round().to(torch.uint8).to(device)
