"""Stages of a training: what a ``train`` key does, wherever a job has one."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import nn

from oodscope.base.errors import OodscopeError, UsageError
from oodscope.base.files import file_sha256
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Role
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import Progress
from oodscope.models.density.base import DensityModel
from oodscope.models.density.saved import FILE as DENSITY
from oodscope.models.density.saved import save_density
from oodscope.training.loop.sets import check_apart, check_sets, facts_of
from oodscope.training.network import StageRecord, build_start, start_record
from oodscope.training.recipe import Recipe, TrainingFacts
from oodscope.training.train import Trained, train_seeds


class Material(Protocol):
    """What a training needs of a benchmark."""

    @property
    def name(self) -> str: ...
    @property
    def class_names(self) -> Sequence[str]: ...
    @property
    def id_train(self) -> ImageSet | None: ...
    @property
    def id_val(self) -> ImageSet | None: ...
    @property
    def ood_train(self) -> ImageSet | None: ...
    @property
    def transform(self) -> Preprocess | None: ...
    def members(self) -> Iterator[tuple[Role, ImageSet]]: ...


def check_training(stages: Sequence[Recipe], benchmark: Material) -> None:
    """One line that says why these recipes cannot be trained on this benchmark, before any is."""
    own = next((stage for stage in stages if stage.own_network), None)
    if own is not None and len(stages) > 1:
        raise UsageError(f"{own.name} trains a network of its own, so it can be no stage of a chain")
    for stage in stages:
        stage.check(training_facts(stage, benchmark))
    outliers = benchmark.ood_train
    if outliers is not None and any(stage.ood_batch_size for stage in stages):
        check_apart(outliers, [(role, images) for role, images in benchmark.members() if role != "ood_train"])


def train_stages(
    architecture: str,
    stages: Sequence[Recipe],
    benchmark: Material,
    folders: Sequence[Path],
    device: str,
    progress: Progress,
    *,
    weights: str | None = None,
    build: Callable[[], nn.Module] | None = None,
) -> tuple[Trained, ...]:
    """Train one stage after the other on ``id_train``, each in its folder; finished ones are read back.

    Parameters
    ----------
    weights : what the first stage starts from, a file or ``pretrained``; by default random weights.
    build : makes the network that the first stage starts from, where it is the user's own.
    """
    made = train_chains(architecture, [stages], benchmark, [folders], device, progress, weights=weights, build=build)
    return made[0]


def train_chains(
    architecture: str,
    chains: Sequence[Sequence[Recipe]],
    benchmark: Material,
    folders: Sequence[Sequence[Path]],
    device: str,
    progress: Progress,
    *,
    weights: str | None = None,
    build: Callable[[], nn.Module] | None = None,
    ranks: bool = False,
) -> list[tuple[Trained, ...]]:
    """``train_stages`` for several chains that differ in their seeds alone; a GPU trains them side by side.

    Parameters
    ----------
    chains, folders : for each network its stages, and their folders.
    ranks : whether processes that torchrun or srun started share each training; see ``train``.
    """
    train_set, transform = material_of(benchmark)
    if chains[0][0].own_network:
        if weights is not None:
            raise UsageError(f"{chains[0][0].name} trains a network of its own from random weights; remove weights")
        build = nn.Identity

    def start() -> nn.Module:
        return build() if build else build_start(architecture, len(benchmark.class_names), weights)

    start.__name__ = architecture  # what progress calls it
    record = None if build else start_record(architecture, len(benchmark.class_names), weights)
    done: list[list[Trained]] = []
    for number, stage in enumerate(chains[0]):
        places = [chain[number] for chain in folders]
        done.append(
            train_seeds(
                [each.model for each in done[-1]] if done else [start] * len(chains),
                stage,
                [chain[number].seed for chain in chains],
                train_set,
                transform,
                val=val_of(stage, benchmark),
                ood_train=benchmark.ood_train if stage.ood_batch_size else None,
                folders=places,
                device=device,
                ranks=ranks,
                progress=progress,
            )
        )
        for chain, place in zip(chains, places):
            if record is not None:
                added = [StageRecord.of(each, training_facts(each, benchmark)) for each in chain[: number + 1]]
                record.followed_by(added).write(place)
    for chain, homes, trained in zip(chains, folders, zip(*done)):
        if isinstance(model := trained[-1].model, DensityModel):
            images = {"training_images": train_set.fingerprint, "set": train_set.name, "benchmark": benchmark.name}
            save_density(model, homes[-1] / DENSITY, {"recipe": chain[-1].describe(), **images})
    return list(zip(*done))


def training_facts(stage: Recipe, benchmark: Material) -> TrainingFacts:
    """What a recipe may know of the benchmark."""
    train_set, transform = material_of(benchmark)
    return facts_of(check_sets(stage, train_set, val_of(stage, benchmark), benchmark.ood_train), transform)


def addresses(architecture: str, stages: Sequence[Recipe], benchmark: Material, weights: str | None) -> list[str]:
    """What names the result of each stage in a cache: everything that it was made from, earlier stages included."""
    train_set, transform = material_of(benchmark)
    described: list[Any] = []
    if weights is not None:
        described.append(file_sha256(Path(weights)) if Path(weights).is_file() else weights)
    found = []
    for stage in stages:
        sets = [train_set, val_of(stage, benchmark), benchmark.ood_train if stage.ood_batch_size else None]
        prints = [images.fingerprint for images in sets if images is not None]
        found.append(fingerprint(*described, stage.describe(), architecture, transform.key, *prints)[:24])
        described.append(found[-1])
    return found


def material_of(benchmark: Material) -> tuple[ImageSet, Preprocess]:
    """Training images and preprocessing, which a benchmark must have to be trained on."""
    if benchmark.id_train is None or benchmark.transform is None:
        raise OodscopeError(f"benchmark {benchmark.name!r} has no id_train and transform: nothing to train on")
    return benchmark.id_train, benchmark.transform


def val_of(stage: Recipe, benchmark: Material) -> ImageSet | None:
    """Validation images where they decide something: they cost a pass per epoch."""
    return benchmark.id_val if stage.patience or stage.keep == "best" else None
