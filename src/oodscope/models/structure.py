"""What a network's structure says of its head, without a single value."""

from typing import Any

import torch
from torch import Tensor, nn

from oodscope.models.borrowing import evaluating
from oodscope.models.network import run_network
from oodscope.models.trace import linear_weight


def final_layer(model: nn.Module, batch: Tensor) -> str | None:
    """The layer that reads one vector per image and whose output the network hands out as it is; ``None`` if none does.

    It works on the ``meta`` device, where networks too large to run here cost nothing. It is a statement about
    structure only: what a ``Classifier`` calls its head is always proved by values.
    """
    outputs: list[tuple[str, Tensor]] = []

    def note(path: str, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        weight = linear_weight(module)
        read = next((value for value in args if isinstance(value, Tensor)), None)
        if weight is None or read is None or not isinstance(output, Tensor):
            return
        if read.numel() == len(batch) * weight[0].numel():
            outputs.append((path, output))

    hooks = [
        module.register_forward_hook(lambda m, args, output, path=path: note(path, m, args, output))
        for path, module in model.named_modules()
        if linear_weight(module) is not None
    ]
    try:
        with evaluating(model), torch.no_grad():
            logits = run_network(model, batch)
    finally:
        for hook in hooks:
            hook.remove()
    return next((path for path, output in reversed(outputs) if _same(output, logits)), None)


def _same(output: Tensor, logits: Tensor) -> bool:
    """Whether one is the other, or a view of it that leaves nothing out (a flattened 1x1 convolution)."""
    if output.numel() != logits.numel():
        return False
    return output is logits or _root(output) is _root(logits)


def _root(value: Tensor) -> Tensor:
    return value if value._base is None else value._base
