"""The logits in a network's output, and the check that there are enough of them."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.data.preprocess import Preprocess


def logits_of(output: Any) -> Tensor:
    """The output itself, or its entry ``logits`` where the network gives a dictionary."""
    logits: Tensor = output["logits"] if isinstance(output, Mapping) else output
    return logits


def check_output(model: nn.Module, preprocess: Preprocess, num_classes: int | None) -> None:
    """Run two black images through the network: better one line now than a traceback in the first epoch.

    Parameters
    ----------
    num_classes : the fewest logits that it must give; ``None`` where it need not give any.
    """
    name = type(model).__name__
    shape = (2, len(preprocess.mean), preprocess.size, preprocess.size)
    model.eval()
    try:
        with torch.no_grad():
            output = model(torch.zeros(shape))
            if num_classes is None:
                return
            logits = logits_of(output)
    except (RuntimeError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"{name} cannot take a batch of shape {list(shape)}: {reason}") from error
    if logits.ndim != 2 or logits.shape[1] < num_classes:
        raise ModelError(
            f"{name} gives an output of shape {list(logits.shape)} for two images; "
            f"{num_classes} classes need [2, {num_classes}]"
        )
