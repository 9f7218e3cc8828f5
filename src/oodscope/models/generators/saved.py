"""A trained generator in one file: safetensors for the weights, JSON for the rest; never a pickle."""

import json
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import ModelError, StorageError
from oodscope.base.files import atomic_path
from oodscope.base.hashing import fingerprint
from oodscope.models.checkpoint import load_weights
from oodscope.models.generators.building import AnyGenerator, AnyShape, build_generator
from oodscope.models.python_object import PREFIX, call_python

FORMAT = 1
_KEY = "oodscope_generator"


class GeneratorRecord(StrictModel):
    """The JSON part of the file.

    Parameters
    ----------
    shape : what decides the layers.
    training : how it was made: recipe, images, seed, steps, seconds, variety, versions.
    """

    format: int = Field(default=FORMAT, ge=1)
    shape: AnyShape
    training: dict[str, Any] = {}


def save_generator(generator: AnyGenerator, path: Path, training: dict[str, Any]) -> None:
    """Write ``generator`` whole or not at all."""
    tensors = {key: value.detach().cpu().contiguous().clone() for key, value in generator.state_dict().items()}
    text = GeneratorRecord(shape=generator.shape, training=training).model_dump_json()
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={_KEY: text, "checksum": _checksum(text, tensors)})


def load_generator(spec: str | Path) -> nn.Module:
    """A generator, on the CPU and ready to draw.

    Parameters
    ----------
    spec : a file that ``oodscope generate gan`` wrote, or ``python:PACKAGE.MODULE:FUNCTION`` for one of your own: a
        function without arguments that returns a ``torch.nn.Module`` from latents ``[N, D]`` to images.
    """
    if str(spec).startswith(PREFIX):
        made = call_python(str(spec))
        if not isinstance(made, nn.Module):
            raise ModelError(f"{spec} returns a {type(made).__name__}; needed: a torch.nn.Module that draws images")
        return made.eval()
    record, tensors = _read(Path(spec))
    generator = build_generator(record.shape)
    load_weights(generator, tensors, str(spec))
    return generator.eval()


def read_record(path: Path) -> GeneratorRecord:
    """What the file says of itself."""
    return _read(path)[0]


def _read(path: Path) -> tuple[GeneratorRecord, dict[str, Tensor]]:
    if not path.is_file():
        raise StorageError(
            f"{path}: no such file; a generator is a .safetensors file or python:PACKAGE.MODULE:FUNCTION"
        )
    try:
        with safe_open(path, framework="pt") as content:
            metadata = content.metadata() or {}
            tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118  # not a dict
        text = metadata.get(_KEY, "null")
        declared = json.loads(text)
    except (OSError, SafetensorError, ValueError) as error:
        raise StorageError(f"{path}: not a readable generator: damaged, cut off, or another kind of file") from error
    if not isinstance(declared, dict):
        raise StorageError(f"{path}: a safetensors file, but not one that `oodscope generate gan` wrote")
    if isinstance(declared.get("format"), int) and declared["format"] > FORMAT:
        raise StorageError(
            f"{path}: written by a newer oodscope (format {declared['format']}, this one reads {FORMAT})"
        )
    if metadata.get("checksum") != _checksum(text, tensors):
        raise StorageError(f"{path}: damaged: its content does not match its checksum; copy it anew or train again")
    return parse(GeneratorRecord, declared, str(path)), tensors


def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    """Of everything in the file: safetensors itself notices a missing end, but not a changed byte."""
    return fingerprint(
        text, sorted(tensors), *(tensors[key].reshape(-1).view(torch.uint8).numpy() for key in sorted(tensors))
    )
