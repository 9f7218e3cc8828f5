"""A trained density model in one file: safetensors for the weights, JSON for the rest; never a pickle."""

from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from oodscope.base.boundedjson import bounded_json
from oodscope.base.config import StrictModel, parse
from oodscope.models.classifier.checkpoint import load_weights
from oodscope.models.classifier.sealed import SealedFile
from oodscope.models.density.autoencoder import Autoencoder, AutoencoderShape
from oodscope.models.density.base import DensityModel, DensityShape
from oodscope.models.density.glow import Glow, GlowShape
from oodscope.models.density.nae import NAE, NAEShape
from oodscope.models.density.pixelcnn import PixelCNN, PixelCNNShape

AnyShape = AutoencoderShape | GlowShape | PixelCNNShape | NAEShape

FILE = "density.safetensors"
"""Its name in the folder of a training."""

FORMAT = 1
_FILE = SealedFile(
    key="oodscope_density",
    format=FORMAT,
    kind="a readable density model",
    writer="`oodscope train` with a recipe such as glow",
    advice="; a density model is the folder or file that `oodscope train --recipe glow` writes",
    remedy="train again",
)


class DensityRecord(StrictModel):
    """The JSON part of the file.

    Parameters
    ----------
    shape : what decides the layers.
    training : how it was made: recipe, images, seed, versions.
    """

    format: int = Field(default=FORMAT, ge=1)
    shape: AnyShape = Field(discriminator="kind")
    training: dict[str, Any] = {}


def build_density(shape: DensityShape) -> DensityModel:
    """A model with first weights from torch's global random numbers."""
    if isinstance(shape, GlowShape):
        return Glow(shape)
    if isinstance(shape, PixelCNNShape):
        return PixelCNN(shape)
    if isinstance(shape, NAEShape):
        return NAE(shape)
    assert isinstance(shape, AutoencoderShape), "every shape has its model"
    return Autoencoder(shape)


def save_density(model: DensityModel, path: Path, training: dict[str, Any]) -> None:
    """Write ``model`` whole or not at all."""
    text, tensors = pack_density(model, training)
    _FILE.write(path, text, tensors)


def load_density(path: Path | str) -> DensityModel:
    """The model in a file, or in the folder of its training; on the CPU, in evaluation mode, its weights at rest."""
    file = density_file(path)
    return _filled(*_read(file), str(file))


def read_density_record(path: Path | str) -> DensityRecord:
    """What the file says of itself."""
    return _read(density_file(path))[0]


def density_file(path: Path | str) -> Path:
    """The file that a path names: itself, or the one in the folder of a training."""
    place = Path(path)
    return place / FILE if place.is_dir() else place


def pack_density(model: DensityModel, training: dict[str, Any]) -> tuple[str, dict[str, Tensor]]:
    """Record and tensors of a model."""
    tensors = {key: value.detach().cpu().contiguous().clone() for key, value in model.state_dict().items()}
    return DensityRecord.model_validate({"shape": model.shape, "training": training}).model_dump_json(), tensors


def read_text(text: str) -> DensityRecord:
    """The record of ``pack_density``, checked."""
    return parse(DensityRecord, bounded_json(text, "the record of a density model"), "the record of a density model")


def _filled(record: DensityRecord, tensors: dict[str, Tensor], where: str) -> DensityModel:
    # first weights are drawn and replaced; nobody else's random numbers should notice
    with torch.random.fork_rng(devices=[]):
        model = build_density(record.shape)
    load_weights(model, tensors, where)
    return model.eval().requires_grad_(False)


def _read(path: Path) -> tuple[DensityRecord, dict[str, Tensor]]:
    declared, tensors = _FILE.read(path)
    return parse(DensityRecord, declared, str(path)), tensors
