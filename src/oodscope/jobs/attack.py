"""AttackJob: an attack on detectors as a configuration, and its execution up to the saved run."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError, ModelError, UnknownNameError, UsageError, did_you_mean
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.base import Detector
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.execution.progress import Progress
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.samplers.registry import SAMPLERS, create_sampler
from oodscope.generation.variations.affine import Affine
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.registry import VARIATIONS, create_variation
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier
from oodscope.jobs.settings import GAN, Entry, named_settings
from oodscope.jobs.storing import reporting_to_store, store_of
from oodscope.jobs.task import Detectors, Task, make_detectors
from oodscope.metrics.metric import Tuning
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.generators.saved import load_generator
from oodscope.report.page.attack import write_attack
from oodscope.runs.attack.attack import VariationLike, attack
from oodscope.runs.attack.exporting import OUTLIERS
from oodscope.runs.attack.plan import PRESETS, Plan
from oodscope.runs.attack.run import Attack
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import applicable, fit_scorers

GAN_SETTINGS = ("dimension", "truncation", "domain", "black", "white", "latent_scale", "classes", "label")


class AttackSettings(StrictModel):
    """Every key has the meaning of the option of ``oodscope attack`` with its name; what is not given, the preset's."""

    on: str = ""
    variations: list[Entry] = ["affine", "color", "affine+color"]
    preset: str = "thorough"
    budget: int | None = Field(default=None, gt=0)
    linf_budget: int | None = Field(default=None, gt=0)
    chains: int | None = Field(default=None, gt=0)
    runs: int | None = Field(default=None, gt=0)
    samplers: list[Entry] = []
    energy: str = ""
    boundary: str = ""
    interpolation: str = ""
    sources: str = ""
    search_seeds: int = Field(default=1, gt=0)
    white_box: bool = False
    judge: ModelSpec | None = None
    export: bool = False
    landscape: bool = False

    @property
    def chosen(self) -> dict[str, Any]:
        """The preset with what was given in its place."""
        if self.preset not in PRESETS:
            raise UnknownNameError("preset", self.preset, PRESETS, f"Known: {', '.join(PRESETS)}")
        names = ("budget", "linf_budget", "chains", "runs", "energy", "boundary", "interpolation", "sources")
        given = {name: value for name in names if (value := getattr(self, name))}
        if "budget" in given:
            # one number for every variation, unless the ball has its own
            given.setdefault("linf_budget", None)
        return {**PRESETS[self.preset], **given}

    def options(self) -> dict[str, Any]:
        """What ``attack`` is called with, beside sets and scorers."""
        options = {key: value for key, value in self.chosen.items() if key != "interpolation"}
        options |= {"search_seeds": self.search_seeds, "white_box": self.white_box}
        runs = {"runs": options.pop("runs")} if "runs" in options else {}
        shared = {"boundary": options["boundary"]} if "boundary" in options else {}
        if members := [_sampler(name, shared, settings) for name, settings in named_settings(self.samplers)]:
            options["sampler"] = members[0] if len(members) == 1 else members
        Plan(**options)  # says what is wrong now, not after a training
        return options | runs

    def named_variations(self) -> list[VariationLike]:
        """Names with their settings, those of the preset included; ``gan=FILE`` as the variation of a generator."""
        entries, smooth = named_settings(self.variations), self.chosen.get("interpolation")
        if not entries:
            raise UsageError("no variation to attack with; name some, such as --variations affine,color")
        made: list[VariationLike] = []
        for name, settings in entries:
            if name.startswith(GAN):
                made.append(_generator(name.removeprefix(GAN), settings))
                continue
            for part in name.split("+"):
                VARIATIONS.get(part.strip().partition(":")[0])
            own = {"interpolation": smooth} | settings if name == Affine.name and smooth else settings
            # says what is wrong with a setting now; the shape is that of the images, later
            create_variation(name, **own) if own else None
            made.append((name, own) if own else name)
        return made


def _sampler(name: str, shared: dict[str, Any], settings: dict[str, Any]) -> Sampler:
    """A sampler; the boundary of the preset goes to those that have one."""
    fields = getattr(SAMPLERS.get(name), "__dataclass_fields__", {})
    return create_sampler(name, **{key: value for key, value in shared.items() if key in fields}, **settings)


def _generator(spec: str, settings: dict[str, Any]) -> GanVariation:
    """The variation of the generator in a file, or that a function of the user's returns."""
    for key in settings:
        if key not in GAN_SETTINGS:
            near = did_you_mean(key, GAN_SETTINGS)
            raise UsageError(f"gan: unknown setting {key!r}.{near} Settings: {', '.join(GAN_SETTINGS)}")
    given = dict(settings)
    black, white = given.pop("black", -1.0), given.pop("white", 1.0)
    return GanVariation(load_generator(spec), **given, output_range=(black, white))


class AttackJob(Task):
    """One attack: the keys of an evaluation that say what is attacked, and how under ``attack``."""

    detectors: Detectors = ["msp", "ebo", "knn", "mds", "vim"]
    tune: Tuning = "default"
    attack: AttackSettings = AttackSettings()

    def found_from(self, folder: Path) -> Self:
        judge = self.attack.judge
        found = self.attack if judge is None else self.attack.model_copy(update={"judge": judge.found_from(folder)})
        return super().found_from(folder).model_copy(update={"attack": found})

    def check(self) -> None:
        super().check()
        make_detectors(self.detectors)
        self.attack.options()
        self.attack.named_variations()
        if self.attack.judge is not None:
            self.attack.judge.check()


def execute_attack(job: AttackJob, progress: Progress) -> tuple[Attack, Path]:
    """Run an attack, or go on with it; the attack and the folder it was saved to, report included.

    The folder is named by all that decides the result. A finished attack is read from it, not repeated.
    """
    job.check()
    with reporting_to_store(job.output, f"attack {job.subject}", progress) as sink:
        return _attack(job, sink)


class PreparedAttack:
    """An attack with its sets and network opened, up to its first search: what several processes may share."""

    def __init__(self, job: AttackJob, progress: Progress) -> None:
        self.job, self.progress = job, progress
        settings, detectors = job.attack, make_detectors(job.detectors)
        self.options, self.variations = settings.options(), settings.named_variations()
        self.benchmark = benchmark = job.open_benchmark(progress)
        self.outliers = _outliers(benchmark, settings.on)
        if settings.judge is not None and not self.outliers.class_names:
            raise DataError(f"{self.outliers.name} has no classes that a judge could know; remove judge")
        if benchmark.id_val is None:
            raise DataError(f"benchmark {benchmark.name!r} has no id_val; an attack standardises scores on it")
        self.id_val = benchmark.id_val
        self.classifier = job.build(benchmark, progress).classifier.with_default_transform(benchmark.transform)
        self.detectors = _chosen(detectors, self.classifier, benchmark)
        described = [each.describe() if isinstance(each, Variation) else each for each in self.variations]
        self.identity = fingerprint(
            settings.model_dump(exclude={"variations", "landscape", "export"}),
            described,
            job.tune,
            job.seed,
            self.classifier.fingerprint,
            self.classifier.transform_key,
            [each.identity for each in self.detectors],
            {role: images.fingerprint for role, images in benchmark.members() if role.startswith("id_")},
            self.outliers.fingerprint,
        )
        self.folder = Path(job.output) / "attacks" / f"{self.outliers.name}-{self.identity[:12]}"

    def attack(self, detectors: Sequence[Detector], variations: Sequence[VariationLike], **more: Any) -> Attack:
        """Search these detectors under these variations; what lies in the folder is not done again."""
        job, benchmark = self.job, self.benchmark
        scorers = fit_scorers(
            self.classifier, benchmark, detectors, tune=job.tune, batch_size=job.batch_size, progress=self.progress
        )
        return attack(
            scorers,
            self.id_val,
            benchmark.id_test,
            self.outliers,
            variations,
            **self.options,
            seed=job.seed,
            tuning=job.tune,
            folder=self.folder / "searches",
            benchmark=(benchmark.name, benchmark.version),
            progress=self.progress,
            **more,
        )


def _attack(job: AttackJob, progress: Progress) -> tuple[Attack, Path]:
    prepared, settings = PreparedAttack(job, progress), job.attack
    folder = prepared.folder
    known = Attack.load(folder) if (folder / "run.json").exists() else None
    exported = settings.export and not (folder / OUTLIERS).exists()
    mapped = settings.landscape and (known is None or known.landscape is None)
    if known is not None and not exported and not mapped:
        return known, folder
    begun = folder / f"{OUTLIERS}.part"
    shutil.rmtree(begun, ignore_errors=True)
    found = prepared.attack(
        prepared.detectors,
        prepared.variations,
        judge=_judge(job, prepared.outliers, prepared.benchmark.transform, progress),
        export=begun if exported else None,
        landscape=mapped,
    )
    if exported:
        # whole or not there: one that was killed while it wrote sets writes them again
        begun.rename(folder / OUTLIERS)
    if known is not None:
        # the searches lay in the folder, results are never overwritten: only landscape and outliers are new
        if not mapped:
            return known, folder
        found.save_landscape(folder)
        return replace(known, landscape=found.landscape), folder
    write_attack(found, folder)
    found.save(folder)
    store_of(job.output).add(found.result, folder)
    return found, folder


def _judge(job: AttackJob, outliers: ImageSet, transform: Preprocess | None, progress: Progress) -> Scorer | None:
    """A classifier of the source classes as a scorer, if the job names one."""
    spec = job.attack.judge
    if spec is None:
        return None
    data = ModelData(outliers.class_names, transform=transform)
    try:
        classifier = build_classifier(spec, data, device=job.device, progress=progress).classifier
    except ModelError as error:
        raise ModelError(f"judge of {outliers.name}: {error}") from error
    classifier = classifier.with_default_transform(transform)
    return Scorer(classifier, create_detector("msp"))


def _outliers(benchmark: Benchmark, name: str) -> ImageSet:
    sets = {images.name: images for images in (*benchmark.far, *benchmark.near)}
    if not sets:
        raise DataError(f"benchmark {benchmark.name!r} has no near or far set to start from")
    if name and name not in sets:
        raise UnknownNameError("set of outliers", name, sets, f"Known: {', '.join(sets)}")
    return sets[name or next(iter(sets))]


def _chosen(asked: str | list[Detector], classifier: Classifier, benchmark: Benchmark) -> list[Detector]:
    """The detectors named, or all that apply."""
    if isinstance(asked, list):
        return asked
    return applicable([create_detector(name) for name in DETECTORS], FromNetwork(classifier), benchmark)[0]
