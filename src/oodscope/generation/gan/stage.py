"""StageFolder: one stage of a training on disk, finished or to be gone on with."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from oodscope.base.errors import StorageError
from oodscope.base.files import atomic_path, write_text
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.generation.gan.health import Health
from oodscope.generation.gan.resumable import Losses, ResumableLoop
from oodscope.models.generators.saved import AnyGenerator, load_generator, read_record, save_generator
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.finished import difference, versions

_GAP = 2


def write_grid(images: Tensor, path: Path, columns: int = 8, zoom: int = 2) -> None:
    """Tile images ``[N, C, H, W]`` in [0, 1], row by row, on white, each pixel ``zoom`` times as large."""
    pixels = images.mul(255).round().byte().permute(0, 2, 3, 1).repeat_interleave(zoom, 1).repeat_interleave(zoom, 2)
    tiles = pixels.cpu().numpy()
    count, height, width, channels = tiles.shape
    rows = -(-count // columns)
    sheet = np.full((rows * (height + _GAP) + _GAP, columns * (width + _GAP) + _GAP, channels), 255, dtype=np.uint8)
    for number, tile in enumerate(tiles):
        top, left = _GAP + number // columns * (height + _GAP), _GAP + number % columns * (width + _GAP)
        sheet[top : top + height, left : left + width] = tile
    with atomic_path(path) as temporary:
        Image.fromarray(sheet[:, :, 0] if channels == 1 else sheet).save(temporary, "PNG")


FILE, GRID, RECORD = "generator.safetensors", "samples.png", "stage.json"


class StageFolder:
    """Holds ``generator.safetensors``, ``samples.png``, the record ``stage.json`` and, until the end, checkpoints.

    Parameters
    ----------
    identity : all that decides the weights after a given number of steps; another stage is never overwritten.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder, self.identity = folder, identity
        self.checkpoints = Checkpoints(folder, fingerprint(identity))

    def finished(self, steps: int) -> dict[str, Any] | None:
        """What the generator in the folder says of its training, if it is this one and took its steps."""
        path = self.folder / FILE
        if not path.exists():
            return None
        training = read_record(path).training
        if training.get("identity") != self.identity:
            changed = difference(self.identity, training.get("identity", {}))
            raise StorageError(f"{self.folder} holds another generator: {changed}; delete it or choose another folder")
        return training if training["steps"] >= steps else None

    def generator(self) -> AnyGenerator:
        """The one in the folder, on the CPU and ready to draw."""
        generator = load_generator(self.folder / FILE)
        assert isinstance(generator, AnyGenerator), "a file holds a generator of our own"
        return generator

    def write(
        self, loop: ResumableLoop, generator: AnyGenerator, images: ImageSet, health: Health, more: dict[str, Any]
    ) -> dict[str, Any]:
        """Keep the generator and its record; checkpoints stay while there are steps to go."""
        training = {
            "identity": self.identity,
            **more,
            "set": {"name": images.name, "images": len(images), "fingerprint": images.fingerprint},
            "steps": loop.step,
            "seconds": loop.seconds,
            "device": device_name(loop.device),
            "health": health.model_dump(),
            "collapsed": health.collapsed,
            "history": [losses.model_dump(exclude_none=True) for losses in loop.history],
            "versions": versions(),
        }
        save_generator(generator, self.folder / FILE, training)
        text = json.dumps({"shape": generator.shape.model_dump(), **training}, indent=2, ensure_ascii=False)
        write_text(self.folder / RECORD, text + "\n")
        if loop.step >= loop.steps:
            self.checkpoints.remove()
        return training


def stored_history(training: dict[str, Any]) -> tuple[Losses, ...]:
    """The losses in a record."""
    return tuple(Losses.model_validate(losses) for losses in training["history"])


def described(parts: Sequence[object]) -> list[list[Any]]:
    """Names and fingerprints of functions that a training depends on, as far as they have one."""
    return [
        [
            getattr(part, "name", None) or getattr(part, "__qualname__", type(part).__qualname__),
            getattr(part, "fingerprint", None) or getattr(part, "fingerprints", None),
        ]
        for part in parts
    ]


def device_name(device: torch.device) -> str:
    """The device, in words."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
