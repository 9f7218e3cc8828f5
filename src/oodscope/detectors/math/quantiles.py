"""Percentiles of more values than ``torch.quantile`` accepts, or than fit in memory."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from oodscope.activations.activations import Activations

HALF = 2**16
"""How many upper halves, and how many lower ones, a float32 can have."""

IN_MEMORY = 2**24
"""Up to so many values are ordered in memory; beyond, they are counted."""


def percentiles(activations: Activations, column: str, percents: Sequence[float], device: torch.device) -> list[float]:
    """Linear-interpolated percentiles of all values of a column, exactly, however many there are."""
    count = math.prod(activations.shape(column))
    positions = [(count - 1) * (percent / 100) for percent in percents]
    ranks = sorted({min(int(position) + up, count - 1) for position in positions for up in (0, 1)})
    find = _ordered if count <= IN_MEMORY else _counted
    value = find(activations, column, ranks, device)
    found = []
    for position in positions:
        below, above = value[int(position)], value[min(int(position) + 1, count - 1)]
        found.append(below + (position - int(position)) * (above - below))
    return found


def _ordered(activations: Activations, column: str, ranks: list[int], device: torch.device) -> dict[int, float]:
    values = activations[column].to(device, torch.float32).flatten()
    # a partition is a tenth of a sort; GPUs only sort
    placed = torch.from_numpy(np.partition(values.numpy(), ranks)) if device.type == "cpu" else values.sort().values
    return dict(zip(ranks, placed[torch.tensor(ranks, device=placed.device)].tolist()))


def _counted(activations: Activations, column: str, ranks: list[int], device: torch.device) -> dict[int, float]:
    """By two passes that hold no values.

    float32 values sort like the integers that their bits spell. The first pass counts the upper halves of
    those integers; the second counts the lower halves under each upper half that holds a wanted rank.
    """
    upper = torch.zeros(HALF, dtype=torch.int64)
    for chunk in activations.chunks(device=device, only=(column,)):
        upper += torch.bincount((_sortable(chunk[column]) >> 16) + HALF // 2, minlength=HALF).cpu()
    up_to = upper.cumsum(dim=0)
    home = {rank: int(torch.searchsorted(up_to, rank, right=True)) for rank in ranks}
    lower = {half: torch.zeros(HALF, dtype=torch.int64) for half in home.values()}
    for chunk in activations.chunks(device=device, only=(column,)):
        keys = _sortable(chunk[column])
        halves = (keys >> 16) + HALF // 2
        for half, counts in lower.items():
            counts += torch.bincount(keys[halves == half] & (HALF - 1), minlength=HALF).cpu()
    value = {}
    for rank, half in home.items():
        inside = rank - int(up_to[half] - upper[half])
        low = int(torch.searchsorted(lower[half].cumsum(dim=0), inside, right=True))
        value[rank] = _from_sortable((half - HALF // 2) * HALF + low)
    return value


def _sortable(values: Tensor) -> Tensor:
    """Integers in the order of the float32 values: below zero, all bits but the sign count backwards."""
    bits = values.flatten().contiguous().view(torch.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def _from_sortable(key: int) -> float:
    bits = torch.tensor([key], dtype=torch.int32)
    return float((bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(torch.float32))
