"""``train_gan``: a set of images in, a generator of images like them out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from oodscope.base.errors import StorageError
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress
from oodscope.generation.gan.health import Variety, measure_variety
from oodscope.generation.gan.loop import GanLoop
from oodscope.generation.gan.real import frame_of
from oodscope.generation.gan.recipe import GanRecipe
from oodscope.generation.gan.resumable import Losses
from oodscope.generation.gan.stage import write_grid
from oodscope.models.generators.saved import load_generator, read_record, save_generator
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.fabric import resolve_device
from oodscope.training.loop.finished import difference, versions
from oodscope.training.loop.pixels import Resident
from oodscope.training.loop.randomness import generator as random_numbers

SCHEMA = 1
"""Raised when the same recipe would no longer give the same weights."""

FILE, GRID = "generator.safetensors", "samples.png"
_COMPARED = 512
_MEAN_OF = 10_000


@dataclass(frozen=True)
class TrainedGan:
    """A trained generator, on the CPU and in evaluation mode, and how it got there.

    Parameters
    ----------
    steps, seconds : taken in all, over every call that went on with it.
    variety : of its images against the training images.
    history : mean losses, every hundred steps.
    """

    generator: StyleGenerator
    recipe: GanRecipe
    steps: int
    seconds: float
    variety: Variety
    history: tuple[Losses, ...]


def train_gan(
    images: ImageSet,
    recipe: GanRecipe = GanRecipe(),  # noqa: B008  # frozen
    *,
    folder: Path,
    size: int | None = None,
    stop_after: float | None = None,
    device: str = "auto",
    progress: Progress = SILENT,
) -> TrainedGan:
    """Train a generator on a set of images.

    Writes ``generator.safetensors`` (``load_generator`` reads it) and ``samples.png``, a grid of 64 fixed latents that
    is renewed with every checkpoint. On a CPU the weights are a function of images, recipe and number of threads, bit
    for bit, however often the training was killed and called again. A finished training is read back from its folder.

    Parameters
    ----------
    images : to learn from; classes do not matter. All are held in memory.
    recipe : see ``GanRecipe``.
    folder : for checkpoints, samples and the result.
    size : side of the images to draw; theirs, if it is 28, 32, 64 or the like, otherwise 32.
    stop_after : seconds after which this call ends cleanly, with the generator of that moment. The same call again
        goes on from there.
    device : ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
    """
    place = resolve_device(device, recipe.precision)
    shape = _shape(images, recipe, size)
    identity = {
        "schema": SCHEMA,
        "recipe": recipe.identity(),
        "shape": shape.model_dump(),
        "training images": images.fingerprint,
    }
    if (found := _read_finished(folder, identity, recipe)) is not None:
        return found
    pixels = Resident(images, Preprocess(size=shape.size, mean=(0.0,) * shape.channels, std=(1.0,) * shape.channels))
    checkpoints = Checkpoints(folder, fingerprint(identity))
    latents = _latents("grid", recipe, 64).to(place)

    def look(generator: StyleGenerator) -> None:
        write_grid(_drawn(generator, latents), folder / GRID)

    with torch.random.fork_rng(devices=[place.index] if place.type == "cuda" else []):
        torch.manual_seed(recipe.seed)
        loop = GanLoop(recipe, pixels.pixels, shape, checkpoints, place, look)
    with progress.stage(f"train gan on {images.name}", recipe.steps) as advance:
        loop.run(advance, stop_after)
    return _finish(loop, images, identity, folder, checkpoints)


def _finish(loop: GanLoop, images: ImageSet, identity: dict[str, Any], folder: Path, kept: Checkpoints) -> TrainedGan:
    """Write the averaged generator; checkpoints stay while there are steps to go."""
    recipe, generator = loop.recipe, loop.average.model.to("cpu").to(memory_format=torch.contiguous_format)
    generator.settle_mean_style(_latents("mean", recipe, _MEAN_OF))
    rows = torch.randperm(len(images), generator=random_numbers("variety", recipe.seed))[:_COMPARED]
    real = loop.pixels[rows.to(loop.device)].cpu() / 255
    variety = measure_variety(_drawn(generator, _latents("variety", recipe, _COMPARED)), real)
    variety.warn()
    training = {
        "identity": identity,
        "recipe": recipe.model_dump(mode="json"),
        "set": {"name": images.name, "images": len(images), "fingerprint": images.fingerprint},
        "steps": loop.step,
        "seconds": loop.seconds,
        "variety": variety.model_dump(),
        "history": [losses.model_dump(exclude_none=True) for losses in loop.history],
        "versions": versions(),
    }
    save_generator(generator, folder / FILE, training)
    if loop.step >= recipe.steps:
        kept.remove()
    return TrainedGan(generator, recipe, loop.step, loop.seconds, variety, tuple(loop.history))


def _read_finished(folder: Path, identity: dict[str, Any], recipe: GanRecipe) -> TrainedGan | None:
    """The result in the folder, if it is this training and has taken its steps; another one is never overwritten."""
    path = folder / FILE
    if not path.exists():
        return None
    training = read_record(path).training
    if training.get("identity") != identity:
        changed = difference(identity, training.get("identity", {}))
        raise StorageError(f"{folder} holds another generator: {changed}; delete it or choose another folder")
    if training["steps"] < recipe.steps:
        return None
    generator = load_generator(path)
    assert isinstance(generator, StyleGenerator), "a file holds a generator of our own"
    history = tuple(Losses.model_validate(losses) for losses in training["history"])
    return TrainedGan(
        generator, recipe, training["steps"], training["seconds"], Variety(**training["variety"]), history
    )


def _shape(images: ImageSet, recipe: GanRecipe, size: int | None) -> GeneratorShape:
    side, channels = frame_of(images, size)
    return GeneratorShape(
        size=side,
        channels=channels,
        latent=recipe.latent,
        width=recipe.width,
        mapping_layers=recipe.mapping_layers,
    )


def _latents(purpose: str, recipe: GanRecipe, count: int) -> Tensor:
    """The same latents whenever they are asked for; the generator normalises them."""
    return torch.randn(count, recipe.latent, generator=random_numbers("gan", purpose, recipe.seed))


@torch.no_grad()
def _drawn(generator: StyleGenerator, latents: Tensor) -> Tensor:
    return torch.cat([generator(part) for part in latents.chunk(-(-len(latents) // 64))]).add(1).div(2).clamp(0, 1)
