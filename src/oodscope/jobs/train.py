"""TrainingJob: trainings by a recipe on a benchmark's images, as a configuration, and their execution."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import nn

from oodscope.base.config import StrictModel, parse_declared
from oodscope.base.errors import UsageError
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Benchmark
from oodscope.data.loading import load_benchmark
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.ranks import Ranks
from oodscope.jobs.opening import open_one
from oodscope.jobs.sets import OwnSets
from oodscope.jobs.stages import check_training, material_of, train_chains, training_facts, val_of
from oodscope.models.classifier.fingerprint import weights_fingerprint
from oodscope.models.classifier.network import choose_device
from oodscope.models.density.base import DensityModel
from oodscope.report.page.page import write_report
from oodscope.results.record import RunRecord, SetRecord, command_line, environment
from oodscope.results.runfile import RECORD
from oodscope.runs.training.run import TrainedNetwork, Training
from oodscope.training.loop.logits import logits_of
from oodscope.training.loop.streams import Stream
from oodscope.training.network import StageRecord
from oodscope.training.recipe import Recipe
from oodscope.training.registry import Stages


class TrainingJob(StrictModel):
    """Networks trained by one recipe. Every key has the meaning of the option of ``oodscope train`` with its name.

    Parameters
    ----------
    train : the recipe and its settings, ``{recipe: NAME, ...}``; a list is a chain of stages.
    weights : what the first stage starts from, a file or ``pretrained``; by default random weights.
    model : the network; a recipe with one of its own, such as ``glow``, takes no notice of it.
    ood_train : outliers to train with, in place of the benchmark's: any place of images, such as the folder of a
        generated set or of what an attack found.
    seeds : one network for each.
    """

    train: Stages
    benchmark: str | OwnSets
    ood_train: str | None = None
    root: str | None = None
    images_per_class: int | None = Field(default=None, gt=0)
    model: str = "resnet18_32"
    weights: str | None = None
    seeds: list[int] = Field(default=[0], min_length=1)
    skip_unreadable: bool = False
    device: str = "auto"
    output: str = "runs/train"


def read_training(declared: Mapping[str, Any], where: str, folder: Path = Path()) -> TrainingJob:
    """A job from its keys; paths in it are relative to ``folder``."""
    job = parse_declared(TrainingJob, declared, where)
    update: dict[str, Any] = {"root": None if job.root is None else str(folder / job.root)}
    if isinstance(job.benchmark, OwnSets):
        update["benchmark"] = job.benchmark.found_from(folder)
    elif job.benchmark.endswith((".yaml", ".yml")):
        update["benchmark"] = str(folder / job.benchmark)
    if job.ood_train is not None and (folder / job.ood_train).exists():
        update["ood_train"] = str(folder / job.ood_train)
    if job.weights not in (None, "pretrained"):
        update["weights"] = str(folder / str(job.weights))
    return job.model_copy(update=update)


def execute_training(job: TrainingJob, progress: Progress) -> tuple[Training, Path]:
    """Train a network for each seed, or read it back; the run, and its folder, beside those of the networks.

    Processes that torchrun or srun started share each training; the first of them writes the run.
    """
    if len(set(job.seeds)) < len(job.seeds):
        raise UsageError(f"seeds {', '.join(map(str, job.seeds))}: each makes one network, so name each once")
    ranks = Ranks.here()
    progress = progress if ranks.first else SILENT
    benchmark = _open(job, progress)
    check_training(job.train, benchmark)
    networks = _train_seeds(job, benchmark, progress)
    recipes = [StageRecord.of(stage, training_facts(stage, benchmark)).recipe for stage in job.train]
    record = _record(job, benchmark, networks, recipes)
    place = Path(job.output) / record.id
    if (place / RECORD).exists():
        return Training.load(place), place
    training = Training(record, recipes, networks)
    if ranks.first:
        training.save(place)
        write_report(training, place / "report.html")
    return training, place


def _open(job: TrainingJob, progress: Progress) -> Benchmark:
    benchmark = _named(job, progress)
    if job.ood_train is None:
        return benchmark
    if not any(stage.ood_batch_size for stage in job.train):
        names = ", ".join(stage.name for stage in job.train)
        raise UsageError(
            f"{names} learns from no outliers: remove ood_train, or take a recipe such as outlier_exposure"
        )
    root = None if job.root is None else Path(job.root)
    options: dict[str, Any] = {"name": "ood_train", "skip_unreadable": job.skip_unreadable}
    return replace(benchmark, ood_train=open_one(job.ood_train, root, progress, **options))


def _named(job: TrainingJob, progress: Progress) -> Benchmark:
    if isinstance(job.benchmark, OwnSets):
        return job.benchmark.open(skip_unreadable=job.skip_unreadable, progress=progress)
    return load_benchmark(
        job.benchmark,
        root=job.root,
        images_per_class=job.images_per_class,
        skip_unreadable=job.skip_unreadable,
        progress=progress,
    )


def _train_seeds(job: TrainingJob, benchmark: Benchmark, progress: Progress) -> list[TrainedNetwork]:
    name, last = job.train[-1].name or type(job.train[-1]).__name__, len(job.train) - 1
    homes = [Path(job.output) / f"{name}-seed{seed}" for seed in job.seeds]
    folders = [[*(home / f"stage{number + 1}" for number in range(last)), home] for home in homes]
    chains = [[stage.model_copy(update={"seed": seed}) for stage in job.train] for seed in job.seeds]
    trained = train_chains(
        _architecture(job), chains, benchmark, folders, job.device, progress, weights=job.weights, ranks=True
    )
    return [
        TrainedNetwork(
            seed=seed,
            folder=str(home),
            fingerprint=weights_fingerprint(stages[-1].model),
            stages=[list(each.history) for each in stages],
            **_judged(job.train[-1], stages[-1].model, benchmark, job.device),
        )
        for seed, home, stages in zip(job.seeds, homes, trained)
    ]


def _record(
    job: TrainingJob, benchmark: Benchmark, networks: Sequence[TrainedNetwork], recipes: Sequence[Mapping[str, Any]]
) -> RunRecord:
    """What was trained; the id is that of a training with the same settings and weights."""
    settled = [[dict(each) for each in recipes], job.model, [each.fingerprint for each in networks], job.seeds]
    used = {"id_train", "id_test", *(["ood_train"] if any(each.ood_batch_size for each in job.train) else [])}
    used |= {"id_val"} if any(val_of(each, benchmark) for each in job.train) else set()
    seconds = sum(epoch.seconds for each in networks for epoch in each.epochs)
    return RunRecord(
        id=f"{recipes[-1]['recipe']}-{fingerprint(benchmark.id_test.fingerprint, *settled)[:12]}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        oodscope_version=version("oodscope"),
        command=command_line(),
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        sets={
            images.name: SetRecord(role=role, n=len(images), fingerprint=images.fingerprint)
            for role, images in benchmark.members()
            if role in used
        },
        model=_architecture(job),
        model_fingerprint=networks[0].fingerprint if len(networks) == 1 else "",
        transform=str(benchmark.transform),
        trained_on=sorted(used - {"id_test", "id_val"}),
        seed=job.seeds[0],
        precision=job.train[-1].precision,
        device=job.device,
        environment=environment(),
        costs={"seconds": seconds},
    )


def _architecture(job: TrainingJob) -> str:
    """The network that is trained; a recipe with one of its own names it."""
    return job.train[0].name if job.train[0].own_network else job.model


@torch.no_grad()
def _judged(recipe: Recipe, model: nn.Module, benchmark: Benchmark, device: str) -> dict[str, Any]:
    """How many images of ``id_test`` a classifier gets right; the mean score of a network that scores images."""
    _, transform = material_of(benchmark)
    place = choose_device(device)
    stream = Stream(benchmark.id_test, transform, place)
    model, judged = model.to(place).eval(), dict[str, Any](n_test=len(stream))
    if recipe.labelled:
        hits = [logits_of(model(batch.images)).argmax(1) == batch.labels for batch in stream.walk(256)]
        judged["correct"] = int(torch.cat(hits).sum())
    elif isinstance(model, DensityModel):
        scores = [model(stream.scale.to_pixels(batch.images)) for batch in stream.walk(256)]
        judged["score"] = float(torch.cat(scores).double().mean())
    model.to("cpu")
    return judged
