"""Percentiles of more values than ``torch.quantile`` accepts, or than fit in memory."""

from collections.abc import Sequence

import torch
from torch import Tensor

from oodscope.activations import Activations

HALF = 2**16
"""How many upper halves, and how many lower ones, a float32 can have."""


def percentile(values: Tensor, percent: float) -> float:
    """Linear-interpolated percentile of all values; ``torch.quantile`` refuses more than 16 million."""
    flat = values.flatten().float()
    position = percent / 100 * (flat.numel() - 1)
    low = int(position)
    below = torch.kthvalue(flat, low + 1).values
    above = torch.kthvalue(flat, min(low + 2, flat.numel())).values
    return float(below.double() + (position - low) * (above.double() - below.double()))


def percentiles(activations: Activations, column: str, percents: Sequence[float], device: torch.device) -> list[float]:
    """Linear-interpolated percentiles of all values of a column, exactly, in two passes and without holding them.

    float32 values sort like the integers that their bits spell. The first pass counts the upper halves of
    those integers; the second counts the lower halves under each upper half that holds a wanted rank.
    """
    upper = torch.zeros(HALF, dtype=torch.int64)
    for chunk in activations.chunks(device=device, only=(column,)):
        upper += torch.bincount((_sortable(chunk[column]) >> 16) + HALF // 2, minlength=HALF).cpu()
    last = int(upper.sum()) - 1
    positions = [last * (percent / 100) for percent in percents]
    ranks = sorted({rank for position in positions for rank in (int(position), min(int(position) + 1, last))})
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
    found = []
    for position in positions:
        below, above = value[int(position)], value[min(int(position) + 1, last)]
        found.append(below + (position - int(position)) * (above - below))
    return found


def _sortable(values: Tensor) -> Tensor:
    """Integers in the order of the float32 values: below zero, all bits but the sign count backwards."""
    bits = values.flatten().contiguous().view(torch.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def _from_sortable(key: int) -> float:
    bits = torch.tensor([key], dtype=torch.int32)
    return float((bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(torch.float32))
