"""Job: one evaluation as a configuration, and the road from it to a saved result."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel, parse, read_yaml
from oodscope.base.errors import OodscopeError
from oodscope.data.benchmark import Benchmark
from oodscope.data.loading import load_benchmark
from oodscope.detectors.base import Detector
from oodscope.detectors.registry import create_detector
from oodscope.execution.progress import Progress
from oodscope.jobs.model import ModelSpec, make_classifier, matched
from oodscope.jobs.sets import OwnSets
from oodscope.jobs.storing import store_of, told_to_store
from oodscope.metrics.metric import Tuning
from oodscope.report.page.page import write_report
from oodscope.runs.evaluation.evaluate import evaluate
from oodscope.runs.evaluation.run import Result


class Job(StrictModel):
    """One evaluation. Every key has the meaning of the option of ``oodscope evaluate`` with its name."""

    benchmark: str | OwnSets
    root: str | None = None
    classes: str | None = None
    images_per_class: int | None = Field(default=None, gt=0)
    model: ModelSpec
    detectors: Literal["all"] | list[str | dict[str, dict[str, Any]]] = "all"
    protocols: list[str | dict[str, dict[str, Any] | None]] = ["standard"]
    tune: Tuning = "default"
    skip_unreadable: bool = False
    batch_size: int = Field(default=256, gt=0)
    device: str = "auto"
    seed: int = 0
    output: str = "runs"
    as_seeds: bool = False

    def each_seed(self) -> list["Job"]:
        """One job for each network, if several are seeds of one recipe; otherwise this one, an ensemble maybe."""
        if not self.as_seeds:
            return [self]
        specs = self.model.each_network()
        if len(specs) < 2:
            raise OodscopeError("as_seeds needs several weights files, or members of a train section, one per seed")
        return [self.model_copy(update={"model": spec, "as_seeds": False}) for spec in specs]

    @property
    def subject(self) -> str:
        """What is judged on what, in words."""
        return f"{self.model.architecture} on {self.benchmark if isinstance(self.benchmark, str) else 'own sets'}"


def read_job(path: Path) -> Job:
    """A job from YAML; paths in it are relative to the file."""
    return job_from(read_yaml(path), path)


def job_from(declared: Any, path: Path) -> Job:
    """A job from what the file at ``path`` declares."""
    job = parse(Job, declared, str(path))
    if isinstance(job.benchmark, OwnSets):
        job = job.model_copy(update={"benchmark": job.benchmark.found_from(path.parent)})
    elif job.benchmark.endswith((".yaml", ".yml")):
        job = job.model_copy(update={"benchmark": str(path.parent / job.benchmark)})
    if job.classes is not None:
        job = job.model_copy(update={"classes": str(path.parent / job.classes)})
    root = None if job.root is None else str(path.parent / job.root)
    return job.model_copy(update={"model": job.model.found_from(path.parent), "root": root})


def execute(job: Job, progress: Progress, labels: Mapping[str, Any] | None = None) -> tuple[Result, Path]:
    """Run a job; the result and the folder it was saved to, report included.

    Parameters
    ----------
    labels : what a study says of the model, kept in the record.
    """
    # names first: a misspelt detector should not wait for a training
    detectors = asked_detectors(job)
    with told_to_store(job.output, f"evaluate {job.subject}", progress) as sink:
        result = _evaluated(job, detectors, sink)
    result = replace(result, record=result.record.model_copy(update={"labels": dict(labels or {})}))
    folder = result.save(Path(job.output) / result.record.id)
    write_report(result, folder / "report.html")
    store_of(job.output).add(result, folder)
    return result, folder


def _evaluated(job: Job, detectors: str | list[Detector], progress: Progress) -> Result:
    benchmark = matched(open_benchmark(job, progress), job.model, job.classes)
    classifier, recipe = make_classifier(job.model, benchmark, job.device, progress)
    return evaluate(
        classifier,
        benchmark,
        detectors,
        job.protocols,
        tune=job.tune,
        batch_size=job.batch_size,
        seed=job.seed,
        recipe=recipe,
        progress=progress,
    )


def open_benchmark(job: Job, progress: Progress) -> Benchmark:
    """The benchmark that a job names, or whose sets it gives."""
    if isinstance(job.benchmark, OwnSets):
        return job.benchmark.open(skip_unreadable=job.skip_unreadable, progress=progress)
    return load_benchmark(
        job.benchmark,
        root=job.root,
        images_per_class=job.images_per_class,
        skip_unreadable=job.skip_unreadable,
        progress=progress,
    )


def asked_detectors(job: Job) -> str | list[Detector]:
    """The detectors that a job names, or ``all``; an unknown name is an error here, before any work."""
    if job.detectors == "all":
        return "all"
    chosen = []
    for entry in job.detectors:
        if isinstance(entry, str):
            chosen.append(create_detector(entry))
        else:
            chosen += [create_detector(name, **params) for name, params in entry.items()]
    return chosen
