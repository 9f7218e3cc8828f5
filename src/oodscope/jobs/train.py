"""TrainingJob: trainings by a recipe on a benchmark's images, as a configuration; and what a ``train`` key does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from pydantic import Field
from torch import nn

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import OodscopeError
from oodscope.base.files import file_sha256
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Benchmark, Role
from oodscope.data.imageset import ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import Progress
from oodscope.jobs.sets import OwnSets
from oodscope.models.classifier.network import choose_device
from oodscope.models.zoo.zoo import create_model
from oodscope.training.loop.logits import logits_of
from oodscope.training.loop.sets import check_apart, check_sets
from oodscope.training.loop.streams import Stream
from oodscope.training.recipe import Recipe
from oodscope.training.registry import Stages
from oodscope.training.train import Trained, train


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


class TrainingJob(StrictModel):
    """Networks trained by one recipe. Every key has the meaning of the option of ``oodscope train`` with its name.

    Parameters
    ----------
    train : the recipe and its settings, ``{recipe: NAME, ...}``; a list is a chain of stages.
    weights : what the first stage starts from, a file or ``pretrained``; by default random weights.
    seeds : one network for each.
    """

    train: Stages
    benchmark: str | OwnSets
    root: str | None = None
    images_per_class: int | None = Field(default=None, gt=0)
    model: str = "resnet18_32"
    weights: str | None = None
    seeds: list[int] = Field(default=[0], min_length=1)
    skip_unreadable: bool = False
    device: str = "auto"
    output: str = "runs/train"


@dataclass(frozen=True)
class TrainedSeed:
    """One network of a job: its seed, its folder, its last stage, and the share of ``id_test`` that it gets right."""

    seed: int
    folder: Path
    trained: Trained
    test_accuracy: float


def read_training(declared: Mapping[str, Any], where: str, folder: Path = Path()) -> TrainingJob:
    """A job from its keys; paths in it are relative to ``folder``."""
    job = parse(TrainingJob, declared, where)
    update: dict[str, Any] = {"root": None if job.root is None else str(folder / job.root)}
    if isinstance(job.benchmark, OwnSets):
        update["benchmark"] = job.benchmark.found_from(folder)
    elif job.benchmark.endswith((".yaml", ".yml")):
        update["benchmark"] = str(folder / job.benchmark)
    if job.weights not in (None, "pretrained"):
        update["weights"] = str(folder / str(job.weights))
    return job.model_copy(update=update)


def execute_training(job: TrainingJob, progress: Progress) -> list[TrainedSeed]:
    """Train a network for each seed, or read it back; a folder for each holds its weights and ``training.json``."""
    if len(set(job.seeds)) < len(job.seeds):
        raise OodscopeError(f"seeds {', '.join(map(str, job.seeds))}: each makes one network, so name each once")
    if isinstance(job.benchmark, OwnSets):
        benchmark = job.benchmark.open(skip_unreadable=job.skip_unreadable, progress=progress)
    else:
        benchmark = load_benchmark(
            job.benchmark,
            root=job.root,
            images_per_class=job.images_per_class,
            skip_unreadable=job.skip_unreadable,
            progress=progress,
        )
    check_training(job.train, benchmark)

    def build() -> nn.Module:
        classes = len(benchmark.class_names) if job.weights is None else None
        return create_model(job.model, num_classes=classes, weights=job.weights)[0]

    build.__name__ = job.model
    done = []
    for seed in job.seeds:
        stages = [stage.model_copy(update={"seed": seed}) for stage in job.train]
        folder = Path(job.output) / f"{stages[-1].name or type(stages[-1]).__name__}-seed{seed}"
        folders = [folder / f"stage{number}" for number in range(1, len(stages))] + [folder]
        trained = train_stages(build, stages, benchmark, folders, job.device, progress)
        done.append(TrainedSeed(seed, folder, trained, _accuracy(trained.model, benchmark, job.device)))
    return done


def check_training(stages: Sequence[Recipe], benchmark: Material) -> None:
    """One line that says why these recipes cannot be trained on this benchmark, before any is."""
    train, _ = _material(benchmark)
    for stage in stages:
        check_sets(stage, train, _val(stage, benchmark), benchmark.ood_train)
    outliers = benchmark.ood_train
    if outliers is not None and any(stage.ood_batch_size for stage in stages):
        check_apart(outliers, [(role, images) for role, images in benchmark.members() if role != "ood_train"])


def train_stages(
    build: Callable[[], nn.Module],
    stages: Sequence[Recipe],
    benchmark: Material,
    folders: Sequence[Path],
    device: str,
    progress: Progress,
) -> Trained:
    """Train one stage after the other on ``id_train``, each in its folder; finished ones are read back.

    Parameters
    ----------
    build : makes the network that the first stage starts from; it is called what the network is called.
    """
    train_set, transform = _material(benchmark)
    trained: Trained | None = None
    for stage, folder in zip(stages, folders, strict=True):
        trained = train(
            build if trained is None else trained.model,
            stage,
            train_set,
            transform,
            val=_val(stage, benchmark),
            ood_train=benchmark.ood_train if stage.ood_batch_size else None,
            folder=folder,
            device=device,
            progress=progress,
        )
    assert trained is not None, "a chain has at least one stage"
    return trained


def addresses(architecture: str, stages: Sequence[Recipe], benchmark: Material, weights: str | None) -> list[str]:
    """What names the result of each stage in a cache: everything that it was made from, earlier stages included."""
    train_set, transform = _material(benchmark)
    described: list[Any] = []
    if weights is not None:
        described.append(file_sha256(Path(weights)) if Path(weights).is_file() else weights)
    found = []
    for stage in stages:
        sets = [train_set, _val(stage, benchmark), benchmark.ood_train if stage.ood_batch_size else None]
        prints = [images.fingerprint for images in sets if images is not None]
        found.append(fingerprint(*described, stage.describe(), architecture, transform.key, *prints)[:24])
        described.append(found[-1])
    return found


def _material(benchmark: Material) -> tuple[ImageSet, Preprocess]:
    if benchmark.id_train is None or benchmark.transform is None:
        raise OodscopeError(f"benchmark {benchmark.name!r} has no id_train and transform: nothing to train on")
    return benchmark.id_train, benchmark.transform


def _val(stage: Recipe, benchmark: Material) -> ImageSet | None:
    """Validation images where they decide something: they cost a pass per epoch."""
    return benchmark.id_val if stage.patience or stage.keep == "best" else None


@torch.no_grad()
def _accuracy(model: nn.Module, benchmark: Benchmark, device: str) -> float:
    _, transform = _material(benchmark)
    place = choose_device(device)
    stream = Stream(benchmark.id_test, transform, place)
    model = model.to(place).eval()
    hits = [logits_of(model(batch.images)).argmax(1) == batch.labels for batch in stream.walk(256)]
    model.to("cpu")
    return float(torch.cat(hits).double().mean())
