"""The predicted class of each row of logits."""

import torch
from torch import Tensor

from oodscope.detectors.looking import may_look


def winners(logits: Tensor) -> Tensor:
    """The column of each row's largest entry; of equal ones the first."""
    if not may_look(logits):
        return logits.argmax(dim=1)
    # NumPy searches long rows with vector instructions, ten times faster than torch
    return torch.from_numpy(logits.numpy().argmax(axis=1))
