"""``train_shifted``: labelled images in, a generator out that makes them look different and mean the same."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress
from oodscope.generation.gan.health import Health, measure_health
from oodscope.generation.gan.real import RealImages, frame_of, unit_range
from oodscope.generation.gan.resumable import Losses
from oodscope.generation.gan.stage import GRID, StageFolder, described, stored_history, write_grid
from oodscope.generation.near.objective import Perceptual
from oodscope.generation.shifted.loop import Members, ShiftedLoop, ShiftedObjective
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.models.generators.pix2pix import UnetGenerator, UnetShape
from oodscope.training.loop.fabric import resolve_device
from oodscope.training.loop.randomness import generator as random_numbers


@torch.no_grad()
def shift(generator: UnetGenerator, images: Tensor, seed: int, batch_size: int = 256) -> Tensor:
    """Images ``[N, C, H, W]`` in [0, 1], redrawn, on the generator's device; labels stay those of ``images``.

    Parameters
    ----------
    generator : ready to draw (``eval()``), as ``load_generator`` and a finished training give it. Its dropout stays on.
    seed : of the dropout; with ``images`` and ``batch_size`` it decides every pixel on a device.
    """
    if generator.training:
        raise ModelError("the generator is in training mode, in which images depend on their batch; call eval() first")
    device = next(generator.parameters()).device
    draws = random_numbers("shift", seed, device=device)
    parts = [generator(part.to(device) * 2 - 1, draws) for part in torch.split(images, batch_size)]
    return unit_range(torch.cat(parts)).clamp(0, 1)


SCHEMA = 1
"""Raised when the same recipe would no longer give the same weights."""

_COMPARED = 1024
_SHOWN = 32


@dataclass(frozen=True)
class TrainedShifted:
    """A trained generator, on the CPU and in evaluation mode, and how it got there.

    Parameters
    ----------
    taken, seconds : steps and time in all, over every call that went on with it.
    health : whether it may be used: the variety of redrawn images beside that of the same images.
    history : mean losses, every hundred steps.
    """

    generator: UnetGenerator
    recipe: ShiftedRecipe
    taken: int
    seconds: float
    health: Health
    history: tuple[Losses, ...]


def train_shifted(
    recipe: ShiftedRecipe,
    images: ImageSet,
    perceptual: Perceptual,
    members: Members,
    *,
    folder: Path,
    size: int | None = None,
    stop_after: float | None = None,
    device: str = "auto",
    progress: Progress = SILENT,
) -> TrainedShifted:
    """Train a generator of shifted images.

    Killed or stopped, the same call goes on, and on one device ends with the same digits; a finished training is read
    back from its folder. The sheet shows each image to the left of its redrawing.

    Parameters
    ----------
    images : to redraw, with labels. All are held in memory.
    perceptual : on the device of the training, differentiable; see ``near/objective.py``.
    members : the ensemble that must be sure, and right; on the device of the training.
    folder : for checkpoints, samples and results.
    size : side of the images; theirs, if it is 28, 32, 64 or the like, otherwise 32.
    stop_after : seconds after which this call ends cleanly, with the generator of that moment.
    """
    side, channels = frame_of(images, size)
    shape = UnetShape(size=side, channels=channels, width=recipe.width)
    identity = {
        "schema": SCHEMA,
        "recipe": recipe.identity(),
        "shape": shape.model_dump(),
        "training images": images.fingerprint,
        "terms": described([perceptual, members]),
    }
    stage = StageFolder(folder, identity)
    if (training := stage.finished(recipe.steps)) is not None:
        return _read(recipe, stage, training)
    place = resolve_device(device, recipe.precision)
    real = RealImages(images, side, channels, place, conditional=True, flip=recipe.flip)
    objective = ShiftedObjective(
        perceptual, members, recipe.lambda_perceptual, recipe.lambda_semantic, recipe.lambda_label
    )

    def look(generator: UnetGenerator) -> None:
        given, redrawn = _redrawn(generator, real, recipe, _SHOWN)
        write_grid(torch.stack([given, redrawn], 1).flatten(0, 1), folder / GRID)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        loop = ShiftedLoop(recipe, shape, real, objective, stage.checkpoints, look)
    with progress.stage(f"train pix2pix on {images.name}", recipe.steps) as advance:
        loop.run(advance, stop_after)
    generator = loop.generator.eval()
    given, redrawn = _redrawn(generator, real, recipe, _COMPARED)
    health = measure_health(redrawn, given)
    generator = generator.to("cpu").to(memory_format=torch.contiguous_format)
    stage.write(loop, generator, images, health, {"recipe": recipe.model_dump(mode="json"), "seed": recipe.seed})
    health.warn("pix2pix")
    return TrainedShifted(generator, recipe, loop.step, loop.seconds, health, tuple(loop.history))


def _redrawn(generator: UnetGenerator, real: RealImages, recipe: ShiftedRecipe, count: int) -> tuple[Tensor, Tensor]:
    given = unit_range(real.draw(count, random_numbers("shifted look", recipe.seed, device=real.device))[0])
    return given, shift(generator, given, recipe.seed)


def _read(recipe: ShiftedRecipe, stage: StageFolder, training: dict[str, Any]) -> TrainedShifted:
    generator = stage.generator()
    assert isinstance(generator, UnetGenerator)
    health = Health.model_validate(training["health"])
    return TrainedShifted(generator, recipe, training["steps"], training["seconds"], health, stored_history(training))
