"""The demo's generated section: a near-OOD set made on the spot, evaluated beside the drawn ones."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from oodscope.base.files import cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Benchmark
from oodscope.data.generated.files import is_generated, open_generated
from oodscope.data.generated.record import read_generated
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import Progress
from oodscope.generation.sets.ensemble import train_ensemble
from oodscope.generation.sets.making import make_set
from oodscope.generation.sets.plan import SetPlan
from oodscope.generation.sets.pool import frame_of
from oodscope.jobs.job import Job
from oodscope.jobs.task import make_detectors
from oodscope.metrics.generated.information import Window
from oodscope.models.classifier.classifier import Classifier
from oodscope.report.page.generated import write_generated_study
from oodscope.results.runfile import RECORD
from oodscope.runs.evaluation.evaluate import evaluate
from oodscope.runs.generated.checking import GeneratedChecks
from oodscope.runs.generated.judging import judge_generated
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.training.augment.crop import Augment
from oodscope.training.methods.cross_entropy import CrossEntropy

NAME = "recombined"
LEARNT = 2000
"""Images that makers learn from: two cores train both in seconds."""

JUDGES = 100
"""Seed of the first judge, far from those of the makers. Judges learn from all images, at half their side: so they
recognise 87 % of the ID test images, for half the work. With less than 80 % they would decide
nothing."""

PLAN = SetPlan(
    method="recombination",
    count=600,
    pool=4000,
    architectures=("small_cnn", "small_cnn"),
    ensemble=CrossEntropy(epochs=3, batch_size=64, warmup_epochs=1, augment=Augment(pad=0, flip=False)),
)


def judge_recombined(job: Job, progress: Progress) -> tuple[GeneratedStudy, Path]:
    """Make a near set of the job's benchmark, judge it, and write its page; what was finished before is read.

    Patches of ID images of two classes, kept where an ensemble disagrees; another ensemble says what they are.
    """
    benchmark = job.open_benchmark(progress)
    assert benchmark.id_train is not None and benchmark.id_val is not None
    step = max(1, len(benchmark.id_train) // LEARNT)
    learnt = benchmark.id_train.take(np.arange(0, len(benchmark.id_train), step))
    home = Path(job.output) / "generated"
    made = home / f"{NAME}-{fingerprint(PLAN.model_dump(mode='json'), learnt.fingerprint)[:12]}"
    _make(made, learnt, benchmark.id_val, job.device, progress)
    images = open_generated(made, NAME)
    wider = _with_near(benchmark, images)
    classifier, recipe, _ = job.build(benchmark, progress)
    detectors = make_detectors(job.detectors)
    names = detectors if isinstance(detectors, str) else [each.id for each in detectors]
    identity = fingerprint(wider.version, classifier.fingerprint, names, job.seed)
    folder = home / f"judged-{identity[:12]}"
    if (folder / RECORD).exists():
        return GeneratedStudy.load(folder), folder
    result = evaluate(
        classifier, wider, detectors, batch_size=job.batch_size, seed=job.seed, recipe=recipe, progress=progress
    )
    checks = GeneratedChecks(
        generated=(NAME,),
        judges=_ensemble(benchmark.id_train, JUDGES, _halved(frame_of(benchmark.id_train)), job.device, progress),
        makers=_ensemble(learnt, PLAN.ensemble.seed, frame_of(learnt), job.device, progress),
        window=Window(*read_generated(made).recipe["window"]),
    )
    study = judge_generated(
        [(classifier, result)], wider, checks, batch_size=job.batch_size, seed=job.seed, progress=progress
    )
    write_generated_study(study, folder)
    study.save(folder)
    return study, folder


def _make(folder: Path, learnt: ImageSet, val: ImageSet, device: str, progress: Progress) -> None:
    if is_generated(folder):
        return
    # a killed run leaves some images and no recipe: they are made again, in a place that is renamed when it is whole
    begun = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(begun, ignore_errors=True)
    make_set(PLAN, learnt, val, begun, work=_work(), device=device, progress=progress)
    begun.rename(folder)


def _ensemble(learnt: ImageSet, seed: int, frame: Preprocess, device: str, progress: Progress) -> list[Classifier]:
    seeds = [seed + number for number in range(len(PLAN.architectures))]
    return train_ensemble(
        *(PLAN.architectures, learnt, None, PLAN.ensemble, seeds),
        preprocess=frame,
        folder=_work() / "ensemble",
        device=device,
        progress=progress,
    )


def _halved(frame: Preprocess) -> Preprocess:
    return frame.model_copy(update={"size": frame.size // 2})


def _work() -> Path:
    return cache_root() / "generated"


def _with_near(benchmark: Benchmark, images: ImageSet) -> Benchmark:
    version = fingerprint(benchmark.version, images.fingerprint)[:12]
    return replace(
        benchmark, name=f"{benchmark.name} with {NAME}", version=version, near=(images, *benchmark.near), ood_train=None
    )
