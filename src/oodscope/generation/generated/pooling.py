"""Filling the pool of a generated set, by the method of its plan."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oodscope.base.errors import OodscopeError
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution import Progress
from oodscope.generation.generated.plan import SetPlan
from oodscope.generation.generated.pool import Pool, read_pool
from oodscope.generation.latent_near import latent_near
from oodscope.generation.perceptual import open_perceptual
from oodscope.generation.recombination import recombine
from oodscope.generation.semantic import EnsembleInformation
from oodscope.generation.variations import GanVariation
from oodscope.models.generators import load_generator


@dataclass(frozen=True)
class Filled:
    """A pool, and what it came from beside plan and images: names and fingerprints for the recipe."""

    pool: Pool
    origin: dict[str, Any] = field(default_factory=dict)


def fill_pool(
    plan: SetPlan,
    id_train: ImageSet,
    frame: Preprocess,
    semantic: EnsembleInformation,
    work: Path,
    device: str,
    progress: Progress,
) -> Filled:
    """As many images as the plan wants to choose from."""
    known = read_pool(id_train, frame)
    if plan.method == "recombination":
        made = recombine(
            known.pixels, known.labels, plan.pool, seed=plan.seed, pieces=plan.pieces, sources=plan.sources
        )
        return Filled(Pool(made.pixels, made.labels))
    perceptual = open_perceptual(plan.perceptual, semantic.members, device)
    variation = GanVariation(load_generator(plan.generator or ""))
    if variation.size != tuple(known.pixels.shape[1:]):
        raise OodscopeError(
            f"{plan.generator} draws images of {list(variation.size)}, and those of {id_train.name} are "
            f"{list(known.pixels.shape[1:])}; train a generator on them: oodscope generate gan"
        )
    address = fingerprint(plan.model_dump(mode="json"), semantic.fingerprints, id_train.fingerprint)[:16]
    images, labels = latent_near(
        variation,
        perceptual,
        semantic,
        known.pixels,
        known.labels,
        plan.pool,
        lambdas=plan.lambdas,
        lambda_perceptual=plan.lambda_perceptual,
        budget=plan.budget,
        seed=plan.seed,
        folder=work / "searches" / address,
        progress=progress,
    )
    return Filled(Pool.of(images, labels), {"perceptual": perceptual.name, "generator": variation.describe()})
