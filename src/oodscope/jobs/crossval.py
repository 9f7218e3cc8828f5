"""CrossvalJob: one dual cross-validation as a configuration, and the road from it to a saved table."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from oodscope.base.config import StrictModel, parse, read_yaml
from oodscope.base.errors import OodscopeError
from oodscope.data.benchmark import Benchmark
from oodscope.data.images.locating import stem_of
from oodscope.data.imageset import ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.own import own_benchmark
from oodscope.data.preprocess import Preprocess
from oodscope.data.public.selection import join
from oodscope.execution.progress import Progress
from oodscope.jobs.sets import Places
from oodscope.jobs.storing import told_to_store
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.backbones import create_backbone
from oodscope.models.zoo.python_object import PREFIX, call_python
from oodscope.models.zoo.zoo import create_model
from oodscope.report.page.crossval import write_crossval
from oodscope.runs.crossval.draws import Pair
from oodscope.runs.crossval.engine import cross_validate
from oodscope.runs.crossval.frozen import FrozenEmbeddings
from oodscope.runs.crossval.networks import FineTuning, FullTraining
from oodscope.runs.crossval.outcome import CrossValidation
from oodscope.runs.crossval.plan import CrossValidationPlan
from oodscope.runs.crossval.trainer import Trainer
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.fine_tune import FineTune


class CrossvalJob(StrictModel):
    """One dual cross-validation. Most keys have the meaning of the option of ``oodscope crossval`` with their name.

    Parameters
    ----------
    benchmark : names or YAML files; each OOD set of each makes a pair with the benchmark's ID images, taken together.
    id_set, ood : places of own sets, in the place of a benchmark.
    transform : preprocessing of own sets, for networks that bring none.
    plan : what is drawn and judged.
    head : how heads are trained on frozen embeddings.
    train : how networks are trained from scratch (``full``).
    fine_tune : how a pretrained network is adapted (``finetune``).
    """

    benchmark: list[str] = []
    id_set: str | None = None
    ood: Places = []
    level: str | None = None
    root: str | None = None
    images_per_class: int | None = Field(default=None, gt=0)
    transform: Preprocess | None = None
    model: str
    weights: str | None = None
    trained_on: list[str] = []
    pretrained_on: list[str] = []
    backbone: Literal["frozen", "full", "finetune"] = "frozen"
    plan: CrossValidationPlan = CrossValidationPlan()
    head: HeadRecipe = HeadRecipe()
    train: CrossEntropy = CrossEntropy(patience=3)
    fine_tune: FineTune = FineTune()
    allow_leak: bool = False
    batch_size: int = Field(default=256, gt=0)
    device: str = "auto"
    output: str = "runs/crossval"


def is_crossval(declared: Any) -> bool:
    """Whether a declaration has a ``plan`` and thus describes a cross-validation."""
    return isinstance(declared, dict) and "plan" in declared


def read_crossval_job(path: Path) -> CrossvalJob:
    """A job from YAML; paths of files in it are relative to the file."""
    job = parse(CrossvalJob, read_yaml(path), str(path))
    update: dict[str, Any] = {
        "benchmark": [str(path.parent / each) if each.endswith((".yaml", ".yml")) else each for each in job.benchmark]
    }
    if job.weights is not None and job.weights != "pretrained":
        update["weights"] = str(path.parent / job.weights)
    if job.root is not None:
        update["root"] = str(path.parent / job.root)
    return job.model_copy(update=update)


def execute_crossval(job: CrossvalJob, progress: Progress) -> tuple[CrossValidation, list[Path]]:
    """Run a job, or go on with it; the result and the files that tell of it."""
    # names first: a misspelt detector should not wait for an embedding
    job.plan.make_detectors()
    with told_to_store(job.output, f"crossval {job.model}", progress) as sink:
        pairs, transform = _pairs(job, sink)
        outcome = cross_validate(
            job.plan,
            pairs,
            _trainer(job, transform),
            folder=job.output,
            allow_leak=job.allow_leak,
            progress=sink,
        )
    return outcome, write_crossval(outcome.table, job.output)


def _pairs(job: CrossvalJob, progress: Progress) -> tuple[list[Pair], Preprocess | None]:
    if bool(job.benchmark) == (job.id_set is not None):
        raise OodscopeError("say what to fold: --benchmark NAME, or --id PLACE with --ood PLACE, not both")
    if job.id_set is not None:
        pairs, transform = _own_pairs(job, job.id_set, progress), job.transform
    else:
        opened = [
            load_benchmark(name, root=job.root, images_per_class=job.images_per_class, progress=progress)
            for name in job.benchmark
        ]
        pairs = [pair for benchmark in opened for pair in benchmark_pairs(benchmark, job.plan.folds)]
        transform = job.transform or opened[0].transform
    if job.level is None:
        return pairs, transform
    levels = [{*pair.id_set.hierarchy} & {*pair.ood_set.hierarchy} for pair in pairs]
    if not any(job.level in each for each in levels):
        known = ", ".join(sorted(set().union(*levels))) or "none"
        raise OodscopeError(f"no pair has the level {job.level!r} in the hierarchy of both sets; there are: {known}")
    return [
        Pair(pair.id_set, pair.ood_set, job.level if job.level in each else None) for pair, each in zip(pairs, levels)
    ], transform


def _own_pairs(job: CrossvalJob, place: str, progress: Progress) -> list[Pair]:
    if not job.ood:
        raise OodscopeError("no outliers to judge on; give some: --ood PLACE")
    opened = own_benchmark(id_test=place, far=job.ood, progress=progress)
    known = opened.id_test.take(np.arange(len(opened.id_test)), stem_of(place))
    return [Pair(known, outliers) for outliers in opened.far]


def benchmark_pairs(benchmark: Benchmark, folds: int) -> list[Pair]:
    """The ID images of a benchmark, taken together, against each of its OOD sets that has classes enough for the folds.

    A benchmark serves other protocols too: sets that cannot be folded are left out, unless that leaves none.
    """
    outliers = [*benchmark.near, *benchmark.far]
    enough = [images for images in outliers if len(np.unique(images.labels)) >= folds]
    if not enough:
        counts = ", ".join(f"{images.name} {len(np.unique(images.labels))}" for images in outliers) or "none"
        raise OodscopeError(
            f"benchmark {benchmark.name!r}: no OOD set has {folds} classes for {folds} folds ({counts})"
        )
    parts = [part for part in (benchmark.id_train, benchmark.id_val, benchmark.id_test) if part is not None]
    known = join(_id_name(benchmark, enough), parts)
    return [Pair(known, images) for images in enough]


def _id_name(benchmark: Benchmark, outliers: list[ImageSet]) -> str:
    """``cifar10`` of ``dcv-cifar10-svhn``: several benchmarks of one ID set share its networks by this name."""
    name = benchmark.name.removeprefix("dcv-")
    return name.removesuffix(f"-{outliers[0].name}") if len(outliers) == 1 else name


def _trainer(job: CrossvalJob, transform: Preprocess | None) -> Trainer:
    if job.backbone == "full":
        if job.weights is not None:
            raise OodscopeError("--backbone full trains from random weights; leave out --weights")
        if transform is None:
            raise OodscopeError("say how pixels are normalised: --transform '{size: 32, mean: [...], std: [...]}'")
        return FullTraining(job.model, job.train, transform, device=job.device, batch_size=job.batch_size)
    classifier = _network(job, transform)
    if job.backbone == "finetune":
        return FineTuning(classifier, job.fine_tune, batch_size=job.batch_size)
    return FrozenEmbeddings(classifier, job.head, batch_size=job.batch_size)


def _network(job: CrossvalJob, transform: Preprocess | None) -> Classifier:
    """The network that embeds, or that is fine-tuned."""
    if job.model.startswith(PREFIX):
        made = call_python(job.model)
        return made if isinstance(made, Classifier) else Classifier(made, transform, device=job.device, name=job.model)
    if job.weights is None:
        raise OodscopeError(f"--backbone {job.backbone} needs trained weights: --weights FILE, or 'pretrained'")
    ends_in_features = job.model.startswith("dinov2:")
    model, own = (create_backbone if ends_in_features else create_model)(job.model, weights=job.weights)
    return Classifier(
        model,
        own or transform,
        device=job.device,
        name=job.model,
        trained_on=job.trained_on,
        pretrained_on=job.pretrained_on,
    )
