"""Percentiles of more values than ``torch.quantile`` accepts."""

import torch
from torch import Tensor


def percentile(values: Tensor, percent: float) -> float:
    """Linear-interpolated percentile of all values; ``torch.quantile`` refuses more than 16 million."""
    flat = values.flatten().float()
    position = percent / 100 * (flat.numel() - 1)
    low = int(position)
    below = torch.kthvalue(flat, low + 1).values
    above = torch.kthvalue(flat, min(low + 2, flat.numel())).values
    return float(below.double() + (position - low) * (above.double() - below.double()))
