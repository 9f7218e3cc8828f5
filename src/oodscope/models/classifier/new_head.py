"""A new head for a trained network: what fine-tuning to other classes begins with."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.models.classifier.network import NetworkError, evaluating, run_network
from oodscope.models.classifier.noise import COUNT, SIDES
from oodscope.models.classifier.trace import linear_weight


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


def replace_head(model: nn.Module, num_classes: int, *, hidden: int = 256, dropout: float = 0.2) -> nn.Module:
    r"""``model`` with two fresh layers in the place of its last one; changed in place where it can be.

    .. math:: h = \max(0,\; V\,\mathrm{drop}(x) + a), \qquad \mathrm{logits} = W\,\mathrm{drop}(h) + b

    The last layer is the one whose output the network hands out as its logits, found in one pass, so any network of
    any library will do. Afterwards ``Classifier`` finds :math:`W, b` as the head and :math:`h` as the features.

    Parameters
    ----------
    model : a network that ends in one linear layer.
    num_classes : logits of the new head.
    hidden : features between the two layers.
    dropout : before both of them.
    """
    batch, path = _last_layer(model)
    weight = linear_weight(model.get_submodule(path))
    assert weight is not None
    head = nn.Sequential(
        nn.Flatten(1),  # some networks end in a convolution of 1x1, which reads [N, D, 1, 1]
        nn.Dropout(dropout),
        nn.Linear(weight[0].numel(), hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, num_classes),
    ).to(weight.device, weight.dtype)
    if not path:
        return head
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, head)
    if final_layer(model, batch) != f"{path}.{len(head) - 1}":
        raise ModelError(f"{type(model).__name__}: a new head at {path!r} is not where the logits come from")
    return model


def last_linear(model: nn.Module) -> tuple[str, nn.Linear]:
    """The last layer and its name, where it is a plain linear one."""
    _, path = _last_layer(model)
    last = model.get_submodule(path)
    if not isinstance(last, nn.Linear):
        raise ModelError(f"{type(model).__name__} ends in a {type(last).__name__} at {path!r}, not in a Linear")
    return path, last


def replace_layer(model: nn.Module, change: Callable[[nn.Linear], nn.Module]) -> nn.Module:
    """``model`` with ``change(last)`` in the place of its last layer; changed in place where it can be.

    What is put there may also return a dictionary with ``logits``, which the network then hands out.
    """
    path, last = last_linear(model)
    changed = change(last).to(last.weight.device, last.weight.dtype)
    if not path:
        return changed
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, changed)
    return model


def _last_layer(model: nn.Module) -> tuple[torch.Tensor, str]:
    """A batch that the network can take, and the name of the layer that makes its logits."""
    first = next((module for module in model.modules() if isinstance(module, nn.Conv2d)), None)
    channels = 3 if first is None else first.in_channels
    device = next((weight.device for weight in model.parameters()), None)
    failure: NetworkError | None = None
    for side in SIDES:
        batch = torch.zeros(COUNT, channels, side, side, device=device)
        try:
            path = final_layer(model, batch)
        except NetworkError as error:
            failure = failure or error
            continue
        if path is None:
            raise ModelError(f"{type(model).__name__} has no last linear layer that could be replaced")
        return batch, path
    raise failure or ModelError(f"{type(model).__name__}: no image could be made to look inside")
