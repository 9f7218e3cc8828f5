"""One stage of a near-OOD training: run, or read back, and judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.base.files import atomic_path
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.execution.progress import Progress
from oodscope.generation.gan.health import Features, Health, measure_health
from oodscope.generation.gan.real import RealImages, unit_range
from oodscope.generation.gan.resumable import Losses
from oodscope.generation.gan.stage import GRID, StageFolder, stored_history, write_grid
from oodscope.generation.near.loop import NearLoop
from oodscope.generation.near.objective import NearObjective
from oodscope.generation.near.recipe import NearRecipe
from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint
from oodscope.models.generators.saved import LatentGenerator
from oodscope.training.loop.fabric import resolve_device
from oodscope.training.loop.randomness import generator as random_numbers


@torch.no_grad()
def sample(generator: LatentGenerator, count: int, seed: int, batch_size: int = 256) -> tuple[Tensor, Tensor]:
    """Images ``[count, C, H, W]`` in [0, 1] and the class that each was asked for, on the generator's device.

    Latents and classes are a function of ``seed`` and ``count``, the same on every device; an image does not depend on
    the others of its batch.

    Parameters
    ----------
    generator : ready to draw (``eval()``), as ``load_generator`` and a finished training give it. One that knows
        classes is asked for all in turn; otherwise all classes are -1.
    """
    if generator.training:
        raise ModelError("the generator is in training mode, in which images depend on their batch; call eval() first")
    device = next(generator.parameters()).device
    latents = torch.randn(count, generator.latent_dimension, generator=random_numbers("near sample", seed)).to(device)
    asked = torch.arange(count, device=device) % generator.classes if generator.classes else None
    classes = torch.full((count,), UNLABELLED, device=device) if asked is None else asked
    parts = [generator(*part) for part in zip(torch.split(latents, batch_size), torch.split(classes, batch_size))]
    return unit_range(torch.cat(parts)).clamp(0, 1), classes


DISCRIMINATOR = "discriminator.safetensors"
_COMPARED = 2048


@dataclass(frozen=True)
class Start:
    """What a stage starts from; ``lambda_semantic`` is ``None`` for the plain generator."""

    generator: LatentGenerator
    discriminator: nn.Module
    recipe: NearRecipe
    lambda_semantic: float | None

    @property
    def steps(self) -> int:
        """To take in this stage."""
        return self.recipe.steps if self.lambda_semantic is None else self.recipe.fine_steps

    @property
    def name(self) -> str:
        """For progress and warnings."""
        if self.lambda_semantic is None:
            return f"the plain {self.recipe.network}"
        return f"the {self.recipe.network} with lambda_semantic {self.lambda_semantic:g}"


@dataclass(frozen=True)
class TrainedNear(Start):
    """A trained generator, on the CPU and in evaluation mode, and how it got there.

    Parameters
    ----------
    generator, discriminator : the averaged generator, and what it was trained against.
    lambda_semantic : λ_s; ``None`` for the plain generator that the others start from.
    taken, seconds : steps and time in all, over every call that went on with it.
    health : whether it may be used.
    history : mean losses, every hundred steps.
    """

    taken: int
    seconds: float
    health: Health
    history: tuple[Losses, ...]

    @property
    def finished(self) -> bool:
        """Whether all steps were taken."""
        return self.taken >= self.steps


def usable(trained: Sequence[TrainedNear]) -> list[TrainedNear]:
    """Those that did not collapse; the others are named in the log."""
    for each in trained:
        each.health.warn(each.name)
    return [each for each in trained if each.health.collapsed is None]


def run_stage(
    start: Start,
    objective: NearObjective | None,
    stage: StageFolder,
    images: ImageSet,
    *,
    stop_after: float | None,
    device: str,
    features: Features | None,
    progress: Progress,
) -> TrainedNear:
    """Train from ``start``, or read back what was trained."""
    if (training := stage.finished(start.steps)) is not None:
        return _read(start, stage, training)
    recipe, shape = start.recipe, start.generator.shape
    place = resolve_device(device, recipe.precision)
    conditional = start.generator.classes > 0
    real = RealImages(images, shape.size, shape.channels, place, conditional=conditional, flip=recipe.flip)

    def look(generator: LatentGenerator) -> None:
        # a column for each class, as long as the sheet stays readable
        columns = generator.classes if 4 <= generator.classes <= 20 else 8
        write_grid(sample(generator, 8 * columns, recipe.seed)[0], stage.folder / GRID, columns=columns)

    loop = NearLoop(recipe, start.generator, start.discriminator, real, objective, start.steps, stage.checkpoints, look)
    with progress.stage(f"train {start.name} on {images.name}", start.steps) as advance:
        loop.run(advance, stop_after)
    generator = loop.settled()
    health = _health(generator, real, recipe, features)
    generator = generator.to("cpu").to(memory_format=torch.contiguous_format)
    discriminator = loop.discriminator.to("cpu").to(memory_format=torch.contiguous_format).eval()
    with atomic_path(stage.folder / DISCRIMINATOR) as temporary:
        save_file({name: value.detach() for name, value in discriminator.state_dict().items()}, temporary)
    more: dict[str, Any] = {
        "recipe": recipe.model_dump(mode="json"),
        "lambda_semantic": start.lambda_semantic,
        "seed": recipe.seed,
    }
    stage.write(loop, generator, images, health, more)
    health.warn(start.name)
    return TrainedNear(
        *(generator, discriminator, recipe, start.lambda_semantic),
        *(loop.step, loop.seconds, health, tuple(loop.history)),
    )


def _read(start: Start, stage: StageFolder, training: dict[str, Any]) -> TrainedNear:
    generator, discriminator = stage.generator(), start.discriminator.eval()
    assert isinstance(generator, LatentGenerator)
    path = stage.folder / DISCRIMINATOR
    load_weights(discriminator, read_checkpoint(path), str(path))
    health = Health.model_validate(training["health"])
    return TrainedNear(
        *(generator, discriminator, start.recipe, start.lambda_semantic),
        *(training["steps"], training["seconds"], health, stored_history(training)),
    )


def _health(generator: LatentGenerator, real: RealImages, recipe: NearRecipe, features: Features | None) -> Health:
    drawn, classes = sample(generator, _COMPARED, recipe.seed)
    draws = random_numbers("near health", recipe.seed, device=real.device)
    pictures, labels = real.draw(_COMPARED, draws)
    return measure_health(drawn, unit_range(pictures), (classes, labels) if generator.classes else None, features)
