"""Wrappers: what a recipe did to a network, as data, so that the trained network opens without the recipe.

A recipe's ``prepare`` may do anything. Most do one of two things: they put a layer of a known kind into the place of
another, or they register a buffer. ``describe_changes`` writes these down, ``apply_changes`` does them again; a change
of any other kind is not described, and such a network is opened by its recipe.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import torch
from torch import nn

from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError
from oodscope.base.registry import load_target
from oodscope.models.classifier.fingerprint import structure_fingerprint

_HERE = "oodscope.training.methods"

WRAPPERS = {
    "branches": "oodscope.models.classifier.branches:Branches",
    "boundary_layer": f"{_HERE}.npos:BoundaryLayer",
    "class_queues": f"{_HERE}.queues:ClassQueues",
    "clustered_head": f"{_HERE}.udg:ClusteredHead",
    "contrast_head": f"{_HERE}.csi:ContrastHead",
    "energy_head": f"{_HERE}.vos:EnergyHead",
    "grouped_head": f"{_HERE}.mos:GroupedHead",
    "gaussian_process": f"{_HERE}.distance_aware:GaussianProcessLayer",
    "noise_generator": f"{_HERE}.noise:NoiseGenerator",
    "prototypes": f"{_HERE}.prototypes:Prototypes",
    "quotient": f"{_HERE}.godin:Quotient",
    "shaped_linear": f"{_HERE}.ish:ShapedLinear",
    "shift_head": f"{_HERE}.csi_unlabelled:ShiftHead",
    "soft_spectral_conv": f"{_HERE}.distance_aware:SoftSpectralConv",
    "soft_spectral_norm": f"{_HERE}.distance_aware:SoftSpectralNorm",
    "standardised": f"{_HERE}.ascood:Standardised",
    "reciprocal_points": f"{_HERE}.arpl:ReciprocalPoints",
    "trained_to_features": f"{_HERE}.t2fnorm:TrainedToFeatures",
}
"""Where each kind is found."""

_PLAIN: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "linear": (nn.Linear, ("in_features", "out_features")),
    "relu": (nn.ReLU, ()),
    "dropout": (nn.Dropout, ("p",)),
    "flatten": (nn.Flatten, ("start_dim", "end_dim")),
    "identity": (nn.Identity, ()),
}
"""Layers of torch, and the attributes that are the arguments of their constructors."""


class Wrapper(Protocol):
    """A module that can be written down."""

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor: plain values, modules, and lists or mappings of modules."""
        ...


class Change(StrictModel):
    """One change: a layer at a place, or a buffer of the module there.

    Parameters
    ----------
    path : of the module; empty for the network itself.
    layer : what stands there now: ``{"given": PATH}`` for a module of the network before, otherwise a ``wrapper`` and
        its ``facts``.
    buffer, shape, dtype : of a buffer.
    """

    path: str
    layer: dict[str, Any] | None = None
    buffer: str | None = None
    shape: tuple[int, ...] = ()
    dtype: str = "float32"


class Before:
    """What a network consisted of before a recipe prepared it, in place or not."""

    def __init__(self, model: nn.Module) -> None:
        self.modules = dict(model.named_modules())
        self.paths = {id(module): path for path, module in self.modules.items()}
        self.tensors = {path: _own_tensors(module) for path, module in self.modules.items()}


def describe_changes(before: Before, after: nn.Module, start: Callable[[], nn.Module]) -> tuple[Change, ...] | None:
    """What was done, or ``None`` where the changes cannot be described.

    Parameters
    ----------
    before : of the network that ``prepare`` was given.
    after : what it made of it.
    start : builds the former once more, to prove that the description makes the latter of it.
    """
    changes: list[Change] = []
    try:
        _compare("", after, before, changes)
        again = apply_changes(start(), changes)
    except (ModelError, NotImplementedError):
        return None
    return tuple(changes) if _alike(after, again) else None


def apply_changes(model: nn.Module, changes: Sequence[Change]) -> nn.Module:
    """``model`` with these changes; its own modules are used again where they are named."""
    modules = dict(model.named_modules())
    for change in changes:
        try:
            if change.layer is not None:
                model = _placed(model, change.path, _build(change.layer, modules))
            elif change.buffer is not None:
                empty = torch.zeros(change.shape, dtype=_dtype(change.dtype))
                model.get_submodule(change.path).register_buffer(change.buffer, empty)
        except (TypeError, ValueError, AttributeError, KeyError, RuntimeError) as error:
            place = change.path or "the network"
            raise ModelError(
                f"the record of a network has a change at {place!r} that cannot be made: {error}"
            ) from error
    return model


def _compare(path: str, module: nn.Module, before: Before, changes: list[Change]) -> None:
    """Go down from the root as long as modules are those of before; what is not is described whole."""
    if before.modules.get(path) is not module:
        changes.append(Change(path=path, layer=_describe(module, before)))
        return
    own = _own_tensors(module)
    if before.tensors[path] - own or any(name in module._parameters for name in own - before.tensors[path]):
        raise NotImplementedError
    for name in sorted(own - before.tensors[path]):
        value = module.get_buffer(name)
        if name not in module.state_dict():
            raise NotImplementedError
        changes.append(
            Change(path=path, buffer=name, shape=tuple(value.shape), dtype=str(value.dtype).removeprefix("torch."))
        )
    for name, child in module.named_children():
        _compare(f"{path}.{name}" if path else name, child, before, changes)


def _own_tensors(module: nn.Module) -> set[str]:
    names = [name for name, _ in module.named_parameters(recurse=False)]
    return {*names, *(name for name, _ in module.named_buffers(recurse=False))}


def _describe(value: Any, before: Before) -> Any:
    if not isinstance(value, nn.Module):
        return _describe_plain(value, before)
    if id(value) in before.paths:
        return {"given": before.paths[id(value)]}
    if type(value) is nn.Sequential:
        return {"wrapper": "sequential", "facts": {"parts": [_describe(part, before) for part in value]}}
    for name, (cls, attributes) in _PLAIN.items():
        if type(value) is cls:
            facts = {each: getattr(value, each) for each in attributes}
            return {"wrapper": name, "facts": facts | ({"bias": value.bias is not None} if cls is nn.Linear else {})}
    target = f"{type(value).__module__}:{type(value).__name__}"
    kind = next((name for name, place in WRAPPERS.items() if place == target), None)
    if kind is None:
        raise NotImplementedError
    return {"wrapper": kind, "facts": _describe_plain(cast(Wrapper, value).facts(), before)}


def _describe_plain(value: Any, before: Before) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _describe(each, before) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_describe(each, before) for each in value]
    return value


def _build(declared: Any, modules: Mapping[str, nn.Module]) -> Any:
    if isinstance(declared, list):
        return [_build(each, modules) for each in declared]
    if not isinstance(declared, Mapping):
        return declared
    if set(declared) == {"given"}:
        return modules[declared["given"]]
    if set(declared) != {"wrapper", "facts"}:
        return {key: _build(each, modules) for key, each in declared.items()}
    kind, facts = declared["wrapper"], _build(dict(declared["facts"]), modules)
    if kind == "sequential":
        return nn.Sequential(*facts["parts"])
    if kind in _PLAIN:
        return _PLAIN[kind][0](**facts)
    return load_target("wrapper", kind, WRAPPERS[kind])(**facts)


def _placed(model: nn.Module, path: str, layer: nn.Module) -> nn.Module:
    if not path:
        return layer
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, layer)
    return model


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"no type of numbers is called {name!r}")
    return dtype


def _alike(one: nn.Module, other: nn.Module) -> bool:
    """Whether two networks have the same modules and take the same weights."""
    shapes = [{name: (value.shape, value.dtype) for name, value in each.state_dict().items()} for each in (one, other)]
    return shapes[0] == shapes[1] and structure_fingerprint(one) == structure_fingerprint(other)
