"""Job: one evaluation as a configuration, and the road from it to a saved result."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from oodscope.api import evaluate
from oodscope.base.config import StrictModel, parse, read_yaml
from oodscope.cli.modelspec import ModelSpec, make_classifier
from oodscope.data import load_benchmark
from oodscope.detectors import Detector, create_detector
from oodscope.execution import Progress
from oodscope.report import write_report
from oodscope.results import Result, ResultStore, Tuning


class Job(StrictModel):
    """One evaluation. Every key has the meaning of the option of ``oodscope evaluate`` with its name."""

    benchmark: str
    root: str | None = None
    images_per_class: int | None = Field(default=None, gt=0)
    model: ModelSpec
    detectors: Literal["all"] | list[str | dict[str, dict[str, Any]]] = "all"
    protocols: list[str] = ["standard"]
    tune: Tuning = "default"
    skip_unreadable: bool = False
    batch_size: int = Field(default=256, gt=0)
    device: str = "auto"
    seed: int = 0
    output: str = "runs"


def read_job(path: Path) -> Job:
    """A job from YAML; paths in it are relative to the file."""
    job = parse(Job, read_yaml(path), str(path))
    if job.benchmark.endswith((".yaml", ".yml")):
        job = job.model_copy(update={"benchmark": str(path.parent / job.benchmark)})
    root = None if job.root is None else str(path.parent / job.root)
    return job.model_copy(update={"model": job.model.found_from(path.parent), "root": root})


def execute(job: Job, progress: Progress) -> tuple[Result, Path]:
    """Run a job; the result and the folder it was saved to, report included."""
    # names first: a misspelt detector should not wait for a training
    detectors = _detectors(job)
    benchmark = load_benchmark(
        job.benchmark,
        root=job.root,
        images_per_class=job.images_per_class,
        skip_unreadable=job.skip_unreadable,
        progress=progress,
    )
    classifier, recipe = make_classifier(job.model, benchmark, job.device, progress)
    result = evaluate(
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
    folder = result.save(Path(job.output) / result.record.id)
    write_report(result, folder / "report.html")
    ResultStore(Path(job.output) / "results.sqlite").add(result)
    return result, folder


def _detectors(job: Job) -> str | list[Detector]:
    if job.detectors == "all":
        return "all"
    chosen = []
    for entry in job.detectors:
        if isinstance(entry, str):
            chosen.append(create_detector(entry))
        else:
            chosen += [create_detector(name, **params) for name, params in entry.items()]
    return chosen
