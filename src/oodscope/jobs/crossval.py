"""CrossvalJob: one cross-validation as a configuration, and its execution up to the saved table."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from oodscope.base.config import StrictModel, parse_declared
from oodscope.base.errors import DataError, OodscopeError, UsageError
from oodscope.data.benchmark import Benchmark
from oodscope.data.folds.dealing import Share, exact_share, hierarchical_choice
from oodscope.data.images.locating import locate, stem_of
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.manifest import FolderSpec
from oodscope.data.own import own_benchmark
from oodscope.data.preprocess import Preprocess
from oodscope.data.public.selection import join, restrict
from oodscope.execution.progress import Progress, announce
from oodscope.jobs.checking import check_writable
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier, network_factory
from oodscope.jobs.sets import Places, check_places, moved
from oodscope.jobs.storing import reporting_to_store
from oodscope.models.classifier.network import choose_device
from oodscope.report.page.crossval import write_crossval
from oodscope.runs.crossval.draws import Divisions, Pair, compact_pairs
from oodscope.runs.crossval.engine import NO_PRE_ACTIVATION, cross_validate
from oodscope.runs.crossval.estimate import estimate
from oodscope.runs.crossval.frozen import FrozenEmbeddings
from oodscope.runs.crossval.networks import FineTuning, FullTraining
from oodscope.runs.crossval.plan import CrossValidationPlan
from oodscope.runs.crossval.run import CrossValidation
from oodscope.runs.crossval.trainer import Trainer
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.fine_tune import FineTune


class CrossvalJob(StrictModel):
    """One cross-validation. Most keys have the meaning of the option of ``oodscope crossval`` with their name.

    Parameters
    ----------
    benchmark : names or YAML files; each OOD set of each makes a pair with the benchmark's ID images, taken together.
    id_set, ood : places of own sets, in the place of a benchmark.
    ood_share : in the place of ``ood``: this share of the classes of ``id_set`` is drawn as outliers from every group
        of ``level`` (Algorithm 2 of DCV-ROOD), or from all classes without a level.
    min_one : draw one class where the share of a group is less than one.
    levels : what the nested folders of own sets are, from the outermost, such as ``[superclass, class]``; the further
        columns of a CSV file are levels by themselves.
    level : of the hierarchy, one above the classes: OOD classes are dealt within its groups.
    deepest : level below the classes, at which ID images are dealt evenly.
    transform : preprocessing of own sets, for networks that bring none.
    model : the network, see ``ModelSpec``; without weights for ``full``.
    plan : what is drawn and judged.
    head : how heads are trained on frozen embeddings.
    train : how networks are trained from scratch (``full``).
    fine_tune : how a pretrained network is adapted (``finetune``).
    """

    benchmark: list[str] = []
    id_set: str | None = None
    ood: Places = []
    ood_share: str | float | None = None
    min_one: bool = False
    levels: list[str] = []
    level: str | None = None
    deepest: str | None = None
    root: str | None = None
    images_per_class: int | None = Field(default=None, gt=0)
    transform: Preprocess | None = None
    skip_unreadable: bool = False
    model: ModelSpec
    backbone: Literal["frozen", "full", "finetune"] = "frozen"
    plan: CrossValidationPlan = CrossValidationPlan()
    head: HeadRecipe = HeadRecipe()
    train: CrossEntropy = CrossEntropy(patience=3)
    fine_tune: FineTune = FineTune()
    allow_leak: bool = False
    batch_size: int = Field(default=256, gt=0)
    device: str = "auto"
    output: str = "runs/crossval"

    @classmethod
    def read(cls, declared: Any, where: str, folder: Path = Path()) -> "CrossvalJob":
        """From what a file or a command line declares; files of benchmarks and weights are relative to ``folder``."""
        job = parse_declared(cls, declared, where)
        update: dict[str, Any] = {
            "benchmark": [str(folder / each) if each.endswith((".yaml", ".yml")) else each for each in job.benchmark],
            "model": job.model.found_from(folder),
            "id_set": None if job.id_set is None else moved(job.id_set, folder),
            "ood": moved(job.ood, folder),
            "root": None if job.root is None else str(folder / job.root),
        }
        return job.model_copy(update=update)

    def check(self) -> None:
        """Refuse what can be known to fail, before any image is read."""
        if bool(self.benchmark) == (self.id_set is not None):
            raise UsageError("say what to fold: --benchmark NAME, or --id PLACE with --ood PLACE, not both")
        if self.id_set is not None and bool(self.ood) == (self.ood_share is not None):
            raise UsageError(
                "no outliers to judge on, or two kinds: pass --ood PLACE, or --ood-share SHARE to draw classes of --id"
            )
        self._check_hierarchy()
        for places in [] if self.id_set is None else [self.id_set, self.ood]:
            check_places(places)
        self.plan.make_detectors()
        if self.plan.pre_activation and self.backbone != "frozen":
            raise UsageError(NO_PRE_ACTIVATION)
        check_writable(Path(self.output))
        choose_device(self.device)
        self.model.check(untrained=self.backbone == "full")
        if self.model.head is not None or self.model.probe is not None or self.model.train is not None:
            raise UsageError("cross-validation trains its own heads and networks: leave out head, probe and train")

    def _check_hierarchy(self) -> None:
        if self.benchmark and (self.ood_share is not None or self.levels):
            raise UsageError("--ood-share and --levels are for own sets (--id); a benchmark declares its own")
        try:
            inside = self.ood_share is None or 0 < exact_share(self.ood_share) < 1
        except DataError as error:
            raise UsageError(f"--ood-share: {error}") from error
        if not inside:
            raise UsageError(f"--ood-share lies between 0 and 1, not at {self.ood_share}")
        if self.deepest is not None and self.level is None:
            raise UsageError(f"--deepest {self.deepest} needs a level above the classes: pass --level too")
        if self.level is not None and not self.plan.stratified:
            raise UsageError("--plain-k-fold deals images regardless of class, --level keeps a hierarchy; choose one")


def execute_crossval(job: CrossvalJob, progress: Progress) -> tuple[CrossValidation, list[Path]]:
    """Run a job, or go on with it; the result and the files that describe it."""
    job.check()
    with reporting_to_store(job.output, f"crossval {job.model.architecture}", progress) as sink:
        pairs, trainer = open_crossval(job, sink)
        if not (Path(job.output) / "plan.json").exists():
            _announce(job.plan, compact_pairs(pairs), trainer, sink)
        outcome = cross_validate(
            job.plan,
            pairs,
            trainer,
            folder=job.output,
            allow_leak=job.allow_leak,
            progress=sink,
        )
    return outcome, write_crossval(outcome.draws, job.output)


def open_crossval(job: CrossvalJob, progress: Progress) -> tuple[list[Pair], Trainer]:
    """The pairs of sets of a job, and what trains on them."""
    pairs, transform = _pairs(job, progress)
    return pairs, _trainer(job, transform, progress)


def _announce(plan: CrossValidationPlan, pairs: list[Pair], trainer: Trainer, progress: Progress) -> None:
    """Say how long a new study will take, before it starts."""
    Divisions(plan, pairs)  # what cannot be folded is refused before anything is measured
    announce(progress, estimate(plan, pairs, trainer))


def _pairs(job: CrossvalJob, progress: Progress) -> tuple[list[Pair], Preprocess | None]:
    if job.id_set is not None:
        pairs, transform = _own_pairs(job, job.id_set, progress), job.transform
    else:
        opened = [
            load_benchmark(
                name,
                root=job.root,
                images_per_class=job.images_per_class,
                skip_unreadable=job.skip_unreadable,
                progress=progress,
            )
            for name in job.benchmark
        ]
        pairs = [pair for benchmark in opened for pair in benchmark_pairs(benchmark, job.plan.folds)]
        transform = job.transform or opened[0].transform
    return [_with_levels(pair, job) for pair in pairs] if _has_level(pairs, job.level) else pairs, transform


def _has_level(pairs: list[Pair], level: str | None) -> bool:
    """Whether a level is asked for; an error where no pair has it."""
    levels = [{*pair.id_set.hierarchy} & {*pair.ood_set.hierarchy} for pair in pairs]
    if level is not None and not any(level in each for each in levels):
        known = ", ".join(sorted(set().union(*levels))) or "none"
        raise UsageError(f"no pair has the level {level!r} in the hierarchy of both sets; there are: {known}")
    return level is not None


def _with_levels(pair: Pair, job: CrossvalJob) -> Pair:
    """The pair with the levels that its sets have; flat where they have not."""
    has = job.level in pair.id_set.hierarchy and job.level in pair.ood_set.hierarchy
    return replace(pair, level=job.level, deepest=job.deepest) if has else pair


def _own_pairs(job: CrossvalJob, place: str, progress: Progress) -> list[Pair]:
    named = job.ood.items() if isinstance(job.ood, dict) else [(stem_of(each), each) for each in job.ood]
    opened = own_benchmark(
        id_test=_opened(place, stem_of(place), job.levels, progress),
        far={name: _opened(each, name, job.levels, progress) for name, each in named} if job.levels else job.ood,
        skip_unreadable=job.skip_unreadable,
        progress=progress,
    )
    known = opened.id_test.take(np.arange(len(opened.id_test)), stem_of(place))
    if job.ood_share is None:
        return [Pair(known, outliers) for outliers in opened.far]
    return [Pair(*divided_by_class(known, job.ood_share, job.plan.seed, level=job.level, min_one=job.min_one))]


def _opened(place: str, name: str, levels: list[str], progress: Progress) -> ImageSet | str:
    """A folder whose nested folders are levels, opened; any other place as it is."""
    source = locate(place)
    if not levels or not isinstance(source, FolderSpec):
        return place
    return source.model_copy(update={"levels": levels}).open(name, Path(), progress)


def divided_by_class(
    images: ImageSet, share: Share, seed: int, *, level: str | None = None, min_one: bool = False
) -> tuple[ImageSet, ImageSet]:
    """Known classes and outliers of one set, drawn group by group of a level (Algorithm 2 of DCV-ROOD)."""
    if level is not None and level not in images.hierarchy:
        known = ", ".join(images.hierarchy) or "none"
        raise OodscopeError(f"set {images.name!r} has no level {level!r}; there are: {known}")
    column = images.hierarchy[level] if level is not None else np.full(len(images), "all")
    labels, first = np.unique(images.labels, return_index=True)
    if UNLABELLED in labels:
        raise OodscopeError(f"set {images.name!r}: images without a class cannot be drawn by class")
    choice = hierarchical_choice(column[first], share, seed, min_one=min_one)
    parts = []
    for name, chosen in ((f"{images.name}_id", choice.id), (f"{images.name}_ood", choice.ood)):
        part = restrict(images, [images.class_names[label] for label in labels[chosen]])
        parts.append(part.take(np.arange(len(part)), name))
    return parts[0], parts[1]


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


def _trainer(job: CrossvalJob, transform: Preprocess | None, progress: Progress) -> Trainer:
    sizes: dict[str, Any] = {"batch_size": job.batch_size}
    if job.backbone == "full":
        if transform is None:
            raise UsageError("say how pixels are normalised: --transform '{size: 32, mean: [...], std: [...]}'")
        build, name = network_factory(job.model), job.model.architecture
        return FullTraining(build, job.train, transform, name=name, device=job.device, **sizes)
    # without the classes of the data: the network keeps the head of its weights, which no fold uses
    built = build_classifier(job.model, ModelData(), device=job.device, features_only=True, progress=progress)
    classifier = built.classifier.with_default_transform(transform)
    if job.backbone == "finetune":
        return FineTuning(classifier, job.fine_tune, **sizes)
    return FrozenEmbeddings(classifier, job.head, **sizes)
