"""float64 where it matters and where the device has it."""

import torch
from torch import Tensor


def precise(values: Tensor) -> Tensor:
    """float64, or float32 on Apple's GPUs, which have no more.

    Softmax in float32 saturates at 1 and makes ties; covariances in float32 lose the small directions.
    """
    return values.to(torch.float32 if values.device.type == "mps" else torch.float64)
