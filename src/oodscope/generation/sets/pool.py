"""Filling the pool of a generated set, by the method of its plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from oodscope.base.errors import DataError, ModelError, OodscopeError
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import Progress
from oodscope.generation.distances.perceptual import FeatureDistance, Lpips, open_perceptual
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.gan.real import frame_of as side_and_channels
from oodscope.generation.near.stages import TrainedNear, sample, usable
from oodscope.generation.near.trained import fine_tune_grid, train_base
from oodscope.generation.sets.latent_near import latent_near
from oodscope.generation.sets.plan import SetPlan
from oodscope.generation.sets.recombination import recombine
from oodscope.generation.shifted.trained import shift, train_shifted
from oodscope.generation.variations.gan import GanVariation
from oodscope.models.classifier.fingerprint import weights_fingerprint
from oodscope.models.generators.saved import load_generator
from oodscope.training.loop.pixels import Resident


@dataclass(frozen=True)
class Pool:
    """Images as they would be stored, before any is chosen.

    Parameters
    ----------
    pixels : uint8 ``[N, C, H, W]`` on the CPU. What is measured is what will be read back, so rounding comes first.
    labels : ``[N]`` class that each was made from; -1 where there is none.
    rows : ``[N]`` the image that each was made from, where it was one; -1 otherwise.
    """

    pixels: Tensor
    labels: Tensor
    rows: Tensor

    def __post_init__(self) -> None:
        if self.pixels.dtype != torch.uint8 or self.pixels.ndim != 4:
            raise DataError(f"a pool holds uint8 images [N, C, H, W], not {self.pixels.dtype} {self.pixels.shape}")
        if not len(self.pixels) == len(self.labels) == len(self.rows):
            raise DataError(f"a pool of {len(self.pixels)} images needs as many labels and rows")

    @classmethod
    def of(cls, images: Tensor, labels: Tensor, rows: Tensor | None = None) -> "Pool":
        """From uint8 images, or from float ones in [0, 1] that are rounded to 256 levels; on any device."""
        if images.is_floating_point():
            images = images.detach().float().mul(255).round().clamp(0, 255).to(torch.uint8)
        made_from = torch.full((len(images),), UNLABELLED) if rows is None else rows
        return cls(images.cpu(), labels.cpu(), made_from.cpu())

    def take(self, rows: Tensor) -> "Pool":
        """Some of its images."""
        return Pool(self.pixels[rows], self.labels[rows], self.rows[rows])

    def __len__(self) -> int:
        return len(self.pixels)


def frame_of(images: ImageSet) -> Preprocess:
    """Side and channels in which images like these are generated, stored and judged."""
    side, channels = side_and_channels(images, None)
    return Preprocess(size=side, mean=(0.5,) * channels, std=(0.5,) * channels)


def read_pool(images: ImageSet, frame: Preprocess) -> Pool:
    """All images of a set in a frame."""
    return Pool.of(Resident(images, frame).pixels, torch.from_numpy(images.labels), torch.arange(len(images)))


@dataclass(frozen=True)
class Place:
    """Where images are made: their frame, the ensemble, a folder for what is trained, a device."""

    frame: Preprocess
    semantic: EnsembleInformation
    work: Path
    device: str
    progress: Progress

    def perceptual(self, plan: SetPlan) -> Lpips | FeatureDistance:
        """The plan's distance."""
        return open_perceptual(plan.perceptual, self.semantic.members, self.device)

    def folder(self, kind: str, *decides: Any) -> Path:
        """A folder of its own for each combination of what decides its content."""
        return self.work / f"{kind}-{fingerprint(self.semantic.fingerprints, *decides)[:16]}"


@dataclass(frozen=True)
class Filled:
    """A pool, and what it came from beside plan and images: names and fingerprints for the recipe."""

    pool: Pool
    origin: dict[str, Any] = field(default_factory=dict)


def fill_pool(plan: SetPlan, id_train: ImageSet, redrawn: ImageSet, place: Place) -> Filled:
    """As many images as the plan wants to choose from.

    Parameters
    ----------
    redrawn : images that shifted ones are made from.
    """
    if plan.kind == "shifted":
        return _shifted(plan, id_train, redrawn, place)
    fillers: dict[str, Callable[[SetPlan, ImageSet, Place], Filled]] = {
        "gan": _trained,
        "latent": _searched,
        "recombination": _recombined,
    }
    return fillers[plan.method](plan, id_train, place)


def _recombined(plan: SetPlan, id_train: ImageSet, place: Place) -> Filled:
    known = read_pool(id_train, place.frame)
    made = recombine(known.pixels, known.labels, plan.pool, seed=plan.seed, pieces=plan.pieces, sources=plan.sources)
    return Filled(Pool.of(made.pixels, made.labels))


def _searched(plan: SetPlan, id_train: ImageSet, place: Place) -> Filled:
    known, perceptual = read_pool(id_train, place.frame), place.perceptual(plan)
    variation = GanVariation(load_generator(plan.generator or ""))
    if variation.size != tuple(known.pixels.shape[1:]):
        raise OodscopeError(
            f"{plan.generator} draws images of {list(variation.size)}, and those of {id_train.name} are "
            f"{list(known.pixels.shape[1:])}; train a generator on them: oodscope generate gan"
        )
    images, labels = latent_near(
        variation,
        perceptual,
        place.semantic,
        known.pixels,
        known.labels,
        plan.pool,
        lambdas=plan.lambdas,
        lambda_perceptual=plan.lambda_perceptual,
        budget=plan.budget,
        seed=plan.seed,
        folder=place.folder("searches", plan.model_dump(mode="json"), variation.describe(), id_train.fingerprint),
        progress=place.progress,
    )
    return Filled(Pool.of(images, labels), {"perceptual": perceptual.name, "generator": variation.describe()})


def _trained(plan: SetPlan, id_train: ImageSet, place: Place) -> Filled:
    """An equal share of samples from the generator of each λ that did not collapse."""
    perceptual, recipe = place.perceptual(plan), plan.near
    folder = place.folder("near", recipe.model_dump(mode="json"), perceptual.name, id_train.fingerprint)
    options: dict[str, Any] = {"device": place.device, "progress": place.progress}
    base = train_base(recipe, id_train, folder=folder / "base", size=place.frame.size, **options)
    tuned = fine_tune_grid(
        base, perceptual, place.semantic, images=id_train, folder=folder, lambdas=plan.lambdas, **options
    )
    healthy = usable(tuned)
    if not healthy:
        raise ModelError(f"all {len(tuned)} fine-tuned generators collapsed; see samples.png in {folder}")
    generators = {f"{each.lambda_semantic:g}": weights_fingerprint(each.generator) for each in healthy}
    pool = draw_near(base, healthy, place.semantic, plan.pool, plan.seed)
    return Filled(pool, {"perceptual": perceptual.name, "generators": generators})


def draw_near(
    base: TrainedNear, tuned: Sequence[TrainedNear], semantic: EnsembleInformation, count: int, seed: int
) -> Pool:
    """``count`` samples or a few more, equally many from each fine-tuned generator.

    The class that an image is made from is the one that was asked for. A generator that knows no classes was fine-tuned
    from a plain one: there it is the class that the members see in the plain image of the same latents.
    """
    share, parts = -(-count // len(tuned)), []
    for number, each in enumerate(tuned):
        part = Pool.of(*sample(each.generator.to(semantic.device), share, seed + number))
        if not base.generator.classes:
            plain = Pool.of(*sample(base.generator.to(semantic.device), share, seed + number))
            part = Pool.of(part.pixels, semantic.information_and_class(plain.pixels)[1])
        parts.append(part)
    return Pool.of(torch.cat([part.pixels for part in parts]), torch.cat([part.labels for part in parts]))


def _shifted(plan: SetPlan, id_train: ImageSet, redrawn: ImageSet, place: Place) -> Filled:
    """The images in turn, each redrawn as often as the size of the pool asks for."""
    perceptual, recipe = place.perceptual(plan), plan.shifted
    folder = place.folder("shifted", recipe.model_dump(mode="json"), perceptual.name, id_train.fingerprint)
    trained = train_shifted(
        recipe,
        id_train,
        perceptual,
        place.semantic,
        folder=folder,
        size=place.frame.size,
        device=place.device,
        progress=place.progress,
    )
    if trained.health.collapsed is not None:
        raise ModelError(f"the generator of shifted images collapsed ({trained.health.collapsed}); see {folder}")
    given = read_pool(redrawn.in_classes(id_train.class_names), place.frame)
    rows = torch.arange(plan.pool) % len(given)
    images = shift(trained.generator.to(place.semantic.device), given.pixels[rows].float() / 255, plan.seed)
    origin = {"perceptual": perceptual.name, "generator": weights_fingerprint(trained.generator)}
    return Filled(Pool.of(images, given.labels[rows], rows), origin)
