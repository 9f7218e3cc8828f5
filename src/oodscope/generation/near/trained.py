"""Generators of near-OOD images: a plain one, then one for each weight of the semantic term."""

import copy
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from oodscope.base.config import parse_declared
from oodscope.base.errors import ModelError
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress
from oodscope.generation.gan.health import Features
from oodscope.generation.gan.real import frame_of
from oodscope.generation.gan.stage import StageFolder, described
from oodscope.generation.near.objective import NearObjective, Perceptual, Semantic
from oodscope.generation.near.recipe import LAMBDAS, NearRecipe
from oodscope.generation.near.stages import Start, TrainedNear, run_stage
from oodscope.models.classifier.fingerprint import weights_fingerprint
from oodscope.models.generators.biggan import BigGanGenerator, BigGanShape, ProjectionDiscriminator
from oodscope.models.generators.dcgan import DcganDiscriminator, DcganGenerator, DcganShape
from oodscope.models.generators.saved import LatentGenerator
from oodscope.models.generators.stylegan import sides


def near_shape(recipe: NearRecipe, images: ImageSet, size: int | None) -> BigGanShape | DcganShape:
    """The generator's shape for these images; latents of a ``biggan`` end with the last whole share of its levels."""
    side, channels = frame_of(images, size)
    if recipe.network == "dcgan":
        return DcganShape(size=side, channels=channels, latent=recipe.latent, width=recipe.width)
    levels = len(sides(side))
    declared = {
        "size": side,
        "channels": channels,
        "classes": len(images.class_names),
        "latent": max(levels, recipe.latent - recipe.latent % levels),
        "width": recipe.width,
    }
    return parse_declared(BigGanShape, declared, "near recipe")


def build_networks(recipe: NearRecipe, shape: BigGanShape | DcganShape) -> tuple[LatentGenerator, nn.Module]:
    """Generator and discriminator with first weights from torch's global random numbers."""
    width = recipe.discriminator_width
    if isinstance(shape, DcganShape):
        return DcganGenerator(shape), DcganDiscriminator(shape.size, shape.channels, width)
    return BigGanGenerator(shape), ProjectionDiscriminator(shape.size, shape.channels, shape.classes, width)


SCHEMA = 1
"""Raised when the same recipe would no longer give the same weights."""


def train_base(
    recipe: NearRecipe,
    images: ImageSet,
    *,
    folder: Path,
    size: int | None = None,
    stop_after: float | None = None,
    device: str = "auto",
    features: Features | None = None,
    progress: Progress = SILENT,
) -> TrainedNear:
    """Train the plain generator that all others are fine-tuned from.

    Killed or stopped, the same call goes on, and on one device ends with the same digits; a finished training is read
    back from its folder.

    Parameters
    ----------
    images : to learn from, with labels if the network is a ``biggan``. All are held in memory.
    folder : for checkpoints, samples and results.
    size : side of the images to draw; theirs, if it is 28, 32, 64 or the like, otherwise 32.
    stop_after : seconds after which this call ends cleanly, with the generator of that moment.
    features : of a network that took no part in the training, for the Fréchet distance in ``health``.
    """
    shape = near_shape(recipe, images, size)
    identity = {
        "schema": SCHEMA,
        "recipe": recipe.identity(fine=False),
        "shape": shape.model_dump(),
        "training images": images.fingerprint,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        generator, discriminator = build_networks(recipe, shape)
    return run_stage(
        Start(generator, discriminator, recipe, None),
        None,
        StageFolder(folder, identity),
        images,
        stop_after=stop_after,
        device=device,
        features=features,
        progress=progress,
    )


def fine_tune(
    base: TrainedNear,
    lambda_semantic: float,
    perceptual: Perceptual,
    semantic: Semantic,
    *,
    images: ImageSet,
    folder: Path,
    stop_after: float | None = None,
    device: str = "auto",
    features: Features | None = None,
    progress: Progress = SILENT,
) -> TrainedNear:
    """A copy of the plain generator, trained on with the perceptual and the semantic term.

    Parameters
    ----------
    base : from ``train_base``; its recipe holds.
    lambda_semantic : λ_s, the weight of the mutual information; the paper's are ``LAMBDAS``.
    perceptual, semantic : on the device of the training, differentiable; see ``near/objective.py``.
    images : those that the base was trained on, for the discriminator and as partners of drawn images.
    """
    if base.health.collapsed is not None:
        raise ModelError(f"the plain generator has collapsed, so none is fine-tuned from it: {base.health.collapsed}")
    recipe = base.recipe
    identity = {
        "schema": SCHEMA,
        "recipe": recipe.identity(fine=True) | {"lambda_semantic": lambda_semantic},
        "base": [weights_fingerprint(base.generator), weights_fingerprint(base.discriminator)],
        "training images": images.fingerprint,
        "terms": described([perceptual, semantic]),
    }
    objective = NearObjective(
        perceptual, semantic, recipe.lambda_perceptual, lambda_semantic, ceiling=recipe.semantic_ceiling
    )
    generator, discriminator = copy.deepcopy((base.generator, base.discriminator))
    return run_stage(
        Start(generator, discriminator, recipe, lambda_semantic),
        objective,
        StageFolder(folder, identity),
        images,
        stop_after=stop_after,
        device=device,
        features=features,
        progress=progress,
    )


def fine_tune_grid(
    base: TrainedNear,
    perceptual: Perceptual,
    semantic: Semantic,
    *,
    images: ImageSet,
    folder: Path,
    lambdas: Sequence[float] = LAMBDAS,
    stop_after: float | None = None,
    device: str = "auto",
    features: Features | None = None,
    progress: Progress = SILENT,
) -> list[TrainedNear]:
    """``fine_tune`` for every weight, each in a folder of its own; those that were finished before the time was up."""
    begun, done = time.perf_counter(), []
    for weight in lambdas:
        left = None if stop_after is None else stop_after - (time.perf_counter() - begun)
        if left is not None and left <= 0:
            break
        made = fine_tune(
            base,
            weight,
            perceptual,
            semantic,
            images=images,
            folder=folder / f"lambda-{weight:g}",
            stop_after=left,
            device=device,
            features=features,
            progress=progress,
        )
        if made.finished:
            done.append(made)
    return done
