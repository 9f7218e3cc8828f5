"""AttackJob: an attack on detectors as a configuration, and its execution up to the saved run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError, UnknownNameError, UsageError, did_you_mean
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.detectors.base import Detector
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.execution.progress import Progress
from oodscope.generation.samplers.registry import create_sampler
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.registry import VARIATIONS
from oodscope.jobs.storing import reporting_to_store, store_of
from oodscope.jobs.task import Detectors, Task, make_detectors
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.generators.saved import load_generator
from oodscope.report.page.attack import write_attack
from oodscope.runs.attack.attack import attack
from oodscope.runs.attack.plan import PRESETS, Plan
from oodscope.runs.attack.run import Attack
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import applicable, fit_scorers

GAN = "gan="


class AttackSettings(StrictModel):
    """Every key has the meaning of the option of ``oodscope attack`` with its name."""

    on: str = ""
    variations: list[str] = ["affine", "color", "affine+color"]
    budget: str = "paper"
    chains: int | None = None
    runs: int = 5
    sampler: str = ""
    energy: str = "standardised"
    boundary: str = ""
    landscape: bool = False

    @property
    def effort(self) -> tuple[int, int]:
        """Evaluations per chain, and chains."""
        if self.budget in PRESETS:
            evaluations, chains = PRESETS[self.budget]
        elif self.budget.isascii() and self.budget.isdigit() and int(self.budget) > 0:
            evaluations, chains = int(self.budget), PRESETS["paper"][1]
        else:
            known = ", ".join(PRESETS)
            near = did_you_mean(self.budget, PRESETS)
            raise UsageError(f"budget {self.budget!r} is neither a preset ({known}) nor a positive number.{near}")
        return evaluations, self.chains or chains

    def options(self) -> dict[str, Any]:
        """What ``attack`` is called with, beside sets and scorers."""
        evaluations, chains = self.effort
        options: dict[str, Any] = {"budget": evaluations, "chains": chains, "runs": self.runs, "energy": self.energy}
        settings: dict[str, Any] = {"boundary": self.boundary} if self.boundary else {}
        plan: dict[str, Any] = {"energy": self.energy, **settings}
        Plan(evaluations, chains, **plan)  # says what is wrong now, not after a training
        if self.sampler:
            return options | {"sampler": create_sampler(self.sampler, **settings)}
        return options | settings

    def named_variations(self) -> list[str | Variation]:
        """Names as they are; ``gan=FILE`` as the variation of the generator in the file."""
        if not self.variations:
            raise UsageError("no variation to attack with; name some, such as --variations affine,color")
        for name in (part.strip() for each in self.variations if not each.startswith(GAN) for part in each.split("+")):
            VARIATIONS.get(name.partition(":")[0])
        return [
            GanVariation(load_generator(Path(name.removeprefix(GAN)))) if name.startswith(GAN) else name
            for name in self.variations
        ]


class AttackJob(Task):
    """One attack: the keys of an evaluation that say what is attacked, and how under ``attack``."""

    detectors: Detectors = ["msp", "ebo", "knn", "mds", "vim"]
    attack: AttackSettings = AttackSettings()

    def check(self) -> None:
        super().check()
        make_detectors(self.detectors)
        self.attack.options()
        self.attack.named_variations()


def execute_attack(job: AttackJob, progress: Progress) -> tuple[Attack, Path]:
    """Run an attack, or go on with it; the attack and the folder it was saved to, report included.

    The folder is named by all that decides the result. A finished attack is read from it, not repeated.
    """
    job.check()
    with reporting_to_store(job.output, f"attack {job.subject}", progress) as sink:
        return _attack(job, sink)


def _attack(job: AttackJob, progress: Progress) -> tuple[Attack, Path]:
    settings, detectors = job.attack, make_detectors(job.detectors)
    options, variations = settings.options(), settings.named_variations()
    benchmark = job.open_benchmark(progress)
    outliers = _outliers(benchmark, settings.on)
    if benchmark.id_val is None:
        raise DataError(f"benchmark {benchmark.name!r} has no id_val; an attack standardises scores on it")
    classifier = job.build(benchmark, progress).classifier.with_default_transform(benchmark.transform)
    chosen = _chosen(detectors, classifier, benchmark)
    described = [each if isinstance(each, str) else each.describe() for each in variations]
    identity = fingerprint(
        settings.model_dump(exclude={"variations", "landscape"}),
        described,
        job.seed,
        classifier.fingerprint,
        classifier.transform_key,
        [each.identity for each in chosen],
        {role: images.fingerprint for role, images in benchmark.members() if role.startswith("id_")},
        outliers.fingerprint,
    )
    folder = Path(job.output) / "attacks" / f"{outliers.name}-{identity[:12]}"
    known = Attack.load(folder) if (folder / "run.json").exists() else None
    if known is not None and (known.landscape is not None or not settings.landscape):
        return known, folder
    scorers = fit_scorers(classifier, benchmark, chosen, batch_size=job.batch_size, progress=progress)
    found = attack(
        scorers,
        benchmark.id_val,
        benchmark.id_test,
        outliers,
        variations,
        **options,
        seed=job.seed,
        folder=folder / "searches",
        benchmark=(benchmark.name, benchmark.version),
        landscape=settings.landscape,
        progress=progress,
    )
    if known is not None:
        # the searches lay in the folder, results are never overwritten: only the landscape is new
        found.save_landscape(folder)
        return replace(known, landscape=found.landscape), folder
    write_attack(found, folder)
    found.save(folder)
    store_of(job.output).add(found.result, folder)
    return found, folder


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
