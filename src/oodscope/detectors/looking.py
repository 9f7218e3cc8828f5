"""Whether a computation may look at its own values on the way."""

import torch
from torch import Tensor


def may_look(values: Tensor) -> bool:
    """Whether code may branch on these values, or hand their memory to NumPy: it then saves work where it can.

    Not on an accelerator, which would have to stop and answer; not where a gradient is recorded, which NumPy would
    lose; not where a fixed graph is drawn from the code, for all values alike. There, detectors go the one way that
    suits every value: float64 from the start.
    """
    return values.device.type == "cpu" and not values.requires_grad and not torch.compiler.is_exporting()
