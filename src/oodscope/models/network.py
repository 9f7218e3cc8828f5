"""One pass through any network: whatever it returns becomes one checked ``[N, K]`` tensor."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError


class Outputs(NamedTuple):
    """What one pass yields: ``logits [N, C]`` and, if the head is known, ``features [N, D]``; float32."""

    logits: Tensor
    features: Tensor | None


class NetworkError(ModelError):
    """The network itself could not digest a batch."""


def run_network(model: nn.Module, batch: Tensor) -> Tensor:
    """The logits (or features, for a network without head) of one batch, checked for shape."""
    try:
        returned = model(batch.to(input_dtype(model)))
    except torch.OutOfMemoryError:
        raise  # callers answer it with a smaller batch
    except Exception as error:
        problem = f"{type(model).__name__} fails on a batch of shape {list(batch.shape)}"
        raise NetworkError(f"{problem}: {first_line(error)}") from error
    return _checked(returned_tensor(returned), batch.shape[0])


def input_dtype(model: nn.Module) -> torch.dtype:
    """The floating type of the weights, so that a half-precision network gets half-precision images."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


def first_line(error: Exception) -> str:
    """What foreign code complains of, short enough for a line of our own."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def returned_tensor(returned: Any) -> Tensor:
    """A tensor, ``{"logits": ...}``, an object with ``.logits``, or a tuple that begins with the logits."""
    if isinstance(returned, Mapping):
        if "logits" not in returned:
            keys = ", ".join(sorted(map(repr, returned)))
            raise ModelError(f"the network returns a dict without 'logits'; its keys are {keys}")
        returned = returned["logits"]
    elif hasattr(returned, "logits"):
        returned = returned.logits
    elif isinstance(returned, (tuple, list)) and returned:
        returned = returned[0]
    if not isinstance(returned, Tensor):
        raise ModelError(
            f"the network returns a {type(returned).__name__}; needed: a tensor of logits, a dict or object "
            "with 'logits', or a tuple that begins with them"
        )
    return returned


def _checked(logits: Tensor, rows: int) -> Tensor:
    if logits.ndim != 2 or logits.shape[0] != rows:
        shape = list(logits.shape)
        raise ModelError(f"the network turns {rows} images into shape {shape}; needed: [{rows}, classes]")
    if logits.shape[1] < 2:
        raise ModelError("the network has one class only: a classifier needs two logits or more")
    return logits
