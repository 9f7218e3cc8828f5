"""Use somebody's network and give it back as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; afterwards every module is in the mode it was in."""
    training = [module for module in model.modules() if module.training]
    if training:
        model.eval()
    try:
        yield
    finally:
        for module in training:
            # not module.train(), which would also switch children that were frozen in evaluation mode
            module.training = True


@contextmanager
def weights_at_rest(model: nn.Module) -> Iterator[None]:
    """No gradient reaches the weights from graphs recorded inside the block.

    A later ``backward()`` then costs only the path to the input, and leaves no ``.grad`` behind.
    """
    moving = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in moving:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in moving:
            parameter.requires_grad_(True)


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Products at full precision inside the block, and equal products when asked again.

    On CUDA, convolutions use TF32 by default, whose eleven bits would hide whether a 1x1 convolution
    really yields the logits; so would autocast on any device. Without TF32, cuDNN may choose a transposed
    convolution that sums in another order each time, and a scorer would look random that is not.
    """
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        exact = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
        with torch.autocast(device.type, enabled=False), exact:
            yield
    finally:
        torch.set_float32_matmul_precision(precision)
