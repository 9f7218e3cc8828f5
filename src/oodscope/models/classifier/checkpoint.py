"""Weights from a file, without ever running what the file contains."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.models.classifier.network import first_line

Weights = dict[str, Tensor]

_TORCH = (".pt", ".pth", ".ckpt", ".tar")  # .tar: training scripts of ImageNet write ``.pth.tar``, which is no archive
_WRAPPERS = ("state_dict", "model_state_dict", "model")


def read_checkpoint(path: str | Path) -> Weights:
    """The named tensors in a ``.safetensors``, ``.pt``, ``.pth``, ``.ckpt`` or ``.pth.tar`` file.

    Pickle can run any code while it loads, so a file that needs it (a whole model saved with
    ``torch.save(model)``, say) is refused. What training scripts wrap around the weights is taken off:
    an outer ``state_dict``, ``model_state_dict`` or ``model`` entry, the ``module.`` that parallel training puts before
    names, and the attacker that adversarial training keeps beside its ``model.``.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    if path.suffix == ".safetensors":
        return _unprefixed(_read_safetensors(path))
    if path.suffix in _TORCH:
        return _unprefixed(_read_torch(path))
    raise ModelError(f"{path}: weights must be a .safetensors, .pt, .pth, .ckpt or .pth.tar file")


def load_weights(model: nn.Module, weights: Weights, where: str) -> None:
    """Copy ``weights`` into ``model``; every tensor must find its place, or one line says which does not.

    Copying casts: float16 storage becomes the float32 that the network computes in.
    """
    own = model.state_dict()
    weights = _renamed(weights, own)
    misshaped = [
        f"{name} is {list(weights[name].shape)}, needed {list(own[name].shape)}"
        for name in own
        if name in weights and weights[name].shape != own[name].shape
    ]
    problems = [
        *_listed("mis-shaped", misshaped),
        # batch norm counts its steps only since 2018, and only training reads the count
        *_listed("missing", [n for n in own if n not in weights and not n.endswith("num_batches_tracked")]),
        *_listed("unexpected", [n for n in weights if n not in own]),
    ]
    if problems:
        raise ModelError(f"{where} does not fit {type(model).__name__}: {'; '.join(problems)}")
    model.load_state_dict(weights, strict=False)


def _renamed(weights: Weights, own: Mapping[str, Tensor]) -> Weights:
    """Tensors under the network's own names, where they have those of OpenOOD's ResNets.

    OpenOOD calls ``shortcut`` what torchvision calls ``downsample``: the projection beside a block that changes the
    shape.
    """
    others = {name: name.replace(".shortcut.", ".downsample.") for name in weights if ".shortcut." in name}
    # a network whose own shortcuts have that name keeps it
    moved = {old: new for old, new in others.items() if old not in own and new in own and new not in weights}
    return {moved.get(name, name): tensor for name, tensor in weights.items()}


def head_classes(model: nn.Module, weights: Weights) -> int | None:
    """How many classes the checkpoint's head has: the rows of the network's last matrix, if it is there."""
    own = model.state_dict()
    names = [name for name in own if name.endswith("weight") and own[name].ndim >= 2]
    last = weights.get(names[-1]) if names else None
    return None if last is None else last.shape[0]


def _read_safetensors(path: Path) -> Weights:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path}: not a readable safetensors file ({error})") from error


def _read_torch(path: Path) -> Weights:
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ModelError(
            f"{path} holds more than tensors and would have to be unpickled, which can run any code. Save "
            "the weights alone, where it was made: safetensors.torch.save_file(model.state_dict(), ...)"
        ) from error
    except Exception as error:  # on damaged files the unpickler raises whatever it stumbles over
        raise ModelError(f"{path}: not a readable torch file ({type(error).__name__}: {first_line(error)})") from error
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ModelError(f"{path}: not a state dict; save model.state_dict() and nothing else")
    return dict(content)


def _unprefixed(weights: Weights) -> Weights:
    if weights and all(name.startswith("module.") for name in weights):
        weights = {name.removeprefix("module."): tensor for name, tensor in weights.items()}
    parts = {name.partition(".")[0] for name in weights}
    if "attacker" in parts and parts <= {"model", "attacker", "normalizer"}:
        # its attacker shares the network, and its normaliser does what the transform does here
        return {name.removeprefix("model."): value for name, value in weights.items() if name.startswith("model.")}
    return weights


def _listed(kind: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{kind} {', '.join(names[:3])}{more}"]
