"""A finished training on disk: ``model.safetensors`` and ``training.json``."""

import json
import logging
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from oodscope.base.errors import StorageError
from oodscope.base.files import atomic_path, checksum, write_text
from oodscope.base.hashing import canonical_json
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.fingerprint import structure_fingerprint, weights_fingerprint
from oodscope.training.loop.history import Epoch
from oodscope.training.loop.sets import Sets
from oodscope.training.recipe import Recipe

SCHEMA = 1
"""Raised when the same recipe would no longer give the same weights."""

Identity = dict[str, Any]
Norm = nn.modules.batchnorm._BatchNorm


def identify(model: nn.Module, recipe: Recipe, sets: Sets, preprocess: Preprocess, ranks: int = 1) -> Identity:
    """Recipe, network, initial weights, preprocessing and data; not the device nor the number of threads.

    The number of ranks belongs to it only where each normalises batches of its own.
    """
    identity = {
        "schema": SCHEMA,
        "recipe": recipe.describe(),
        "network": structure_fingerprint(model),
        "initial weights": weights_fingerprint(model),
        "preprocessing": preprocess.model_dump(mode="json"),
        "training images": sets.train.fingerprint,
        "validation images": sets.val.fingerprint if sets.val else None,
        "outliers": sets.ood.fingerprint if sets.ood else None,
    }
    # a training without further pictures is that of before there could be any
    identity |= {"pictures": sets.pictures.fingerprint} if sets.pictures else {}
    local = ranks > 1 and not recipe.sync_batchnorm and any(isinstance(each, Norm) for each in model.modules())
    return identity | ({"ranks": ranks} if local else {})


def difference(ours: Identity, theirs: Identity) -> str:
    """The first thing in which two trainings differ, for a message."""
    for part, value in ours.items():
        other = theirs.get(part)
        if canonical_json(other) == canonical_json(value):
            continue
        if part == "recipe" and isinstance(other, dict):
            key = next(key for key in {**value, **other} if value.get(key) != other.get(key))
            return f"{key} was {other.get(key)!r} and is now {value.get(key)!r}"
        if part == "initial weights":
            return "other initial weights (a function that builds the network starts from the recipe's seed)"
        return f"other {part}"
    return "nothing"


_LOG = logging.getLogger(__name__)
_ADVICE = "delete it or choose another folder"


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Fill ``model`` from ``path``; a recipe whose code changed since may have built another network."""
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise StorageError(f"{path} does not fit the network that the recipe builds; {_ADVICE}") from error


LAST = "last.safetensors"
"""The weights of the last epoch, where those of the best were kept."""


def write_finished(
    folder: Path, model: nn.Module, identity: Identity, history: list[Epoch], last: Mapping[str, Tensor] | None
) -> None:
    """Weights first, description last: where the description is, the weights are whole."""
    if last is not None:
        _write_weights(folder / LAST, last)
    content = _write_weights(folder / "model.safetensors", model.state_dict())
    description = {
        "identity": identity,
        "weights_crc32": checksum(content),
        "history": [epoch.model_dump() for epoch in history],
        "versions": versions(),
    }
    write_text(folder / "training.json", json.dumps(description, indent=2, ensure_ascii=False) + "\n")


def _write_weights(path: Path, weights: Mapping[str, Tensor]) -> bytes:
    content = safetensors.torch.save(
        {name: value.detach().cpu().contiguous().clone() for name, value in weights.items()}
    )
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
    return content


def read_last(folder: Path) -> dict[str, Tensor] | None:
    """The weights of the last epoch of a finished training, where they were kept beside the best."""
    return safetensors.torch.load((folder / LAST).read_bytes()) if (folder / LAST).exists() else None


def read_finished(folder: Path, model: nn.Module, identity: Identity) -> list[Epoch] | None:
    """Load the finished weights into ``model`` and give the history; ``None`` if there is nothing sound.

    The result of another training is never overwritten: that is an error which says what differs.
    """
    path = folder / "training.json"
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        theirs, expected = description["identity"], description["weights_crc32"]
        history = [Epoch.model_validate(epoch) for epoch in description["history"]]
        content = (folder / "model.safetensors").read_bytes()
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: not a description of a training; {_ADVICE}") from error
    if theirs != identity:
        raise StorageError(f"{folder} holds another training: {difference(identity, theirs)}; {_ADVICE}")
    if checksum(content) != expected:
        _LOG.warning("%s is damaged; training anew", folder / "model.safetensors")
        return None
    load_weights(model, safetensors.torch.load(content), folder / "model.safetensors")
    return history


def check_finished(folder: Path) -> None:
    """Refuse a finished training whose weights are not those that its description states."""
    try:
        expected = json.loads((folder / "training.json").read_text(encoding="utf-8"))["weights_crc32"]
        content = (folder / "model.safetensors").read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{folder}: not a finished training ({error})") from error
    if checksum(content) != expected:
        raise StorageError(f"{folder / 'model.safetensors'}: its bytes do not have the checksum that was noted")


def versions() -> dict[str, str]:
    """What a training ran on."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("oodscope", "lightning-fabric"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
