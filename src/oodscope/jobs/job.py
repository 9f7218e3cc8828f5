"""Job: one evaluation as a configuration, and its execution up to the saved result."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oodscope.base.config import read_yaml
from oodscope.base.errors import UsageError
from oodscope.detectors.base import Detector
from oodscope.detectors.registry import create_detector
from oodscope.execution.progress import Progress
from oodscope.jobs.storing import reporting_to_store, save_result
from oodscope.jobs.task import Detectors, Task, make_detectors
from oodscope.metrics.interval import Intervals
from oodscope.metrics.metric import Tuning
from oodscope.protocols.registry import read_protocols
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.evaluate import evaluate
from oodscope.runs.evaluation.pipeline import check_roles
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.scoring import score_benchmark
from oodscope.training.registry import PLAIN


class Job(Task):
    """One evaluation. Every key has the meaning of the option of ``oodscope evaluate`` with its name."""

    detectors: Detectors = "all"
    protocols: list[str | dict[str, dict[str, Any] | None]] = ["standard"]
    tune: Tuning = "default"
    intervals: Intervals = "full"
    as_seeds: bool = False
    skip_inapplicable: bool = False

    def check(self) -> None:
        super().check()
        read_protocols(self.protocols)
        make_detectors(self.detectors)
        self.each_seed()

    def each_seed(self) -> list["Job"]:
        """One job for each network, if several are seeds of one recipe; otherwise this one, an ensemble maybe."""
        if not self.as_seeds:
            return [self]
        specs = self.model.each_network()
        if len(specs) < 2:
            raise UsageError("as_seeds needs several weights files, or members of a train section, one per seed")
        return [self.model_copy(update={"model": spec, "as_seeds": False}) for spec in specs]


def read_job(path: Path) -> Job:
    """A job from YAML; paths in it are relative to the file."""
    return Job.read(read_yaml(path), str(path), path.parent)


def execute(
    job: Job,
    progress: Progress,
    labels: Mapping[str, Any] | None = None,
    score: Callable[..., ScoreTable] = score_benchmark,
) -> tuple[Result, Path]:
    """Run a job; the result and the folder it was saved to, report included.

    Parameters
    ----------
    labels : what a study says of the model, kept in the record.
    score : see ``evaluate``.
    """
    job.check()
    with reporting_to_store(job.output, f"evaluate {job.subject}", progress) as sink:
        result = _evaluated(job, asked_detectors(job), score, sink)
    result = replace(result, record=result.record.model_copy(update={"labels": dict(labels or {})}))
    return result, save_result(result, job.output)


def asked_detectors(job: Job) -> str | list[Detector]:
    """The detectors that were asked for, and those that belong to a training other than plain cross-entropy."""
    detectors, stages = make_detectors(job.detectors), job.model.train
    if isinstance(detectors, str) or not stages or stages[-1].name == PLAIN:
        return detectors
    names = {each.name for each in detectors}
    return detectors + [create_detector(name) for name in stages[-1].detectors if name not in names]


def _evaluated(
    job: Job, detectors: str | list[Detector], score: Callable[..., ScoreTable], progress: Progress
) -> Result:
    benchmark = job.open_benchmark(progress)
    check_roles(benchmark, read_protocols(job.protocols), job.tune)
    built = job.build(benchmark, progress)
    return evaluate(
        built.classifier,
        benchmark,
        detectors,
        job.protocols,
        tune=job.tune,
        batch_size=job.batch_size,
        seed=job.seed,
        intervals=job.intervals,
        recipe=built.recipe,
        skip_inapplicable=job.skip_inapplicable,
        score=score,
        progress=progress,
    )
