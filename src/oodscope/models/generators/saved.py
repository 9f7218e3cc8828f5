"""A trained generator in one file: safetensors for the weights, JSON for the rest; never a pickle."""

from pathlib import Path
from typing import Any

from pydantic import Field
from torch import Tensor, nn

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import ModelError
from oodscope.models.classifier.checkpoint import load_weights
from oodscope.models.classifier.sealed import SealedFile
from oodscope.models.generators.biggan import BigGanGenerator, BigGanShape
from oodscope.models.generators.dcgan import DcganGenerator, DcganShape
from oodscope.models.generators.pix2pix import UnetGenerator, UnetShape
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator
from oodscope.models.zoo.python_object import PREFIX, call_python

AnyShape = GeneratorShape | DcganShape | BigGanShape | UnetShape
"""Each but the first says its kind, so a file without one is of the first."""

AnyGenerator = StyleGenerator | DcganGenerator | BigGanGenerator | UnetGenerator

LatentGenerator = DcganGenerator | BigGanGenerator
"""Those that draw from Gaussian latents and, if they know any (``classes``), a class."""


def build_generator(shape: AnyShape) -> AnyGenerator:
    """A generator with first weights from torch's global random numbers."""
    if isinstance(shape, BigGanShape):
        return BigGanGenerator(shape)
    if isinstance(shape, DcganShape):
        return DcganGenerator(shape)
    return UnetGenerator(shape) if isinstance(shape, UnetShape) else StyleGenerator(shape)


FORMAT = 1
_FILE = SealedFile(
    key="oodscope_generator",
    format=FORMAT,
    kind="a readable generator",
    writer="`oodscope generate gan`",
    advice="; a generator is a .safetensors file or python:PACKAGE.MODULE:FUNCTION",
    remedy="train again",
)


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
    _FILE.write(path, text, tensors)


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
    declared, tensors = _FILE.read(path)
    return parse(GeneratorRecord, declared, str(path)), tensors
