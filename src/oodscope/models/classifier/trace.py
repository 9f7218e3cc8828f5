"""Watch the linear layers of a network at work during one pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from oodscope.models.classifier.network import evaluating, full_precision, run_network


@dataclass(frozen=True)
class LinearCall:
    """One linear layer's (last) call in a pass over ``N`` images.

    ``features`` is its input as ``[N, D]``, or ``None`` if it was applied at several places of each
    image (pixels, tokens). ``output`` is ``[N, K]``, the mean over places; ``rectified`` is the mean of
    the positive part; ``first`` is the output at the first place, where class tokens stand.
    """

    path: str
    convolution: bool
    weight: Tensor
    bias: Tensor | None
    features: Tensor | None
    output: Tensor
    rectified: Tensor
    first: Tensor


@dataclass(frozen=True)
class Trace:
    """The logits of a pass and its linear layers in the order in which they ended."""

    logits: Tensor
    calls: tuple[LinearCall, ...]


def trace(model: nn.Module, batch: Tensor) -> Trace:
    """Run ``model`` once, in evaluation mode and without gradients, with every linear layer watched."""
    recorder = _Recorder(rows=len(batch))
    with _hooked(model, recorder), evaluating(model), full_precision(batch.device), torch.no_grad():
        logits = run_network(model, batch)
    return Trace(logits, tuple(recorder.calls.values()))


@contextmanager
def captured_input(model: nn.Module, path: str | None) -> Iterator[list[Tensor]]:
    """A list that receives the input of each call of the module at ``path`` inside the block."""
    inputs: list[Tensor] = []
    if path is None:
        yield inputs
        return

    def keep(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        value = _first_tensor(args, kwargs)
        if value is not None:
            # a copy: a class token is a view that would keep all tokens alive, and later layers may
            # work in place
            inputs.append(value.clone())

    handle = model.get_submodule(path).register_forward_pre_hook(keep, with_kwargs=True)
    try:
        yield inputs
    finally:
        handle.remove()


def linear_weight(module: nn.Module) -> Tensor | None:
    """The weight of a layer that may be linear in its input: ``[K, D]``, or a convolution's ``[K, D, h, w]``.

    Asked of the attribute, not of the class, because libraries bring their own linear layers.
    """
    weight = getattr(module, "weight", None)
    return weight.detach() if isinstance(weight, Tensor) and weight.ndim in (2, 4) else None


def linear_bias(module: nn.Module) -> Tensor | None:
    """The bias that goes with ``linear_weight``, if there is one."""
    bias = getattr(module, "bias", None)
    return bias.detach() if isinstance(bias, Tensor) else None


class _Recorder:
    """Hooks that keep, for each linear layer, what its last call read and wrote."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.calls: dict[str, LinearCall] = {}
        self._features: dict[str, Tensor | None] = {}

    def before(self, path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        value, weight = _first_tensor(args, kwargs), linear_weight(module)
        whole = value is not None and weight is not None and value.numel() == self.rows * weight[0].numel()
        self._features[path] = value.clone().flatten(1) if whole and value is not None else None

    def after(self, path: str, module: nn.Module, output: Any) -> None:
        weight = linear_weight(module)
        if weight is None or not isinstance(output, Tensor) or len(output) != self.rows or output.ndim < 2:
            return
        channels_last = output.movedim(1, -1) if weight.ndim == 4 else output
        places = channels_last.reshape(self.rows, -1, channels_last.shape[-1])
        self.calls.pop(path, None)
        self.calls[path] = LinearCall(
            path=path,
            convolution=weight.ndim == 4,
            weight=weight.flatten(1),
            bias=linear_bias(module),
            features=self._features[path],
            output=places.mean(1),
            rectified=places.relu().mean(1),
            first=places[:, 0],
        )


@contextmanager
def _hooked(model: nn.Module, recorder: _Recorder) -> Iterator[None]:
    handles = []
    try:
        for path, module in model.named_modules():
            if linear_weight(module) is None:
                continue
            handles.append(
                module.register_forward_pre_hook(
                    lambda m, args, kwargs, path=path: recorder.before(path, m, args, kwargs),
                    with_kwargs=True,
                )
            )
            handles.append(
                module.register_forward_hook(lambda m, _, output, path=path: recorder.after(path, m, output))
            )
        yield
    finally:
        for handle in handles:
            handle.remove()


def _first_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    return next((value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)), None)
