"""Clip: values into a range, with a gradient at its ends."""

import torch
from torch import Tensor


def clip(values: Tensor, low: float, high: float) -> Tensor:
    r"""``values`` brought to [low, high], with the derivative 1 in the whole closed range and 0 beyond it.

    At the ends themselves the derivative of ``Tensor.clamp`` is a convention: 1 up to torch 2.10, 0 in torch 2.15. A
    search needs the first: a black pixel lies at an end, an image as it is scores exactly what the reference of its
    energy holds, and a gradient of 0 there would leave every chain at its start.
    """
    return torch.where(values < low, low, torch.where(values > high, high, values))
