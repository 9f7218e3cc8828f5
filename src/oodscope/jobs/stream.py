"""StreamJob: detectors on streams of images as a configuration, and its execution up to the saved run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from oodscope.base.config import Seed, StrictModel, parse_declared
from oodscope.base.errors import UsageError
from oodscope.data.benchmark import Benchmark, Role
from oodscope.data.images.labels import read_class_names
from oodscope.detectors.base import Detector
from oodscope.detectors.streaming import create_entry
from oodscope.execution.progress import Progress
from oodscope.jobs.arrays import ArrayFiles
from oodscope.jobs.checking import check_writable
from oodscope.jobs.storing import reporting_to_store
from oodscope.jobs.task import Task
from oodscope.report.page.page import write_report
from oodscope.runs.evaluation.activations import open_arrays
from oodscope.runs.evaluation.extraction import Extraction, FromNetwork
from oodscope.runs.stream.protocol import StreamProtocol
from oodscope.runs.stream.run import StreamRun
from oodscope.runs.stream.schedule import Schedule, default_schedules
from oodscope.runs.stream.stream import check_streams, stream

Entries = list[str | dict[str, dict[str, Any]]]
ENTRIES: Entries = ["knn", "msp", {"oodd": {"mode": "causal"}}, "oodd", "running_prototypes"]
"""Two constant baselines, and the stream detectors that need nothing but logits and features."""


GROUPS: tuple[Role, ...] = ("near", "far", "csid")
"""The roles that several sets have."""


class StreamSettings(StrictModel):
    """Every key has the meaning of the option of ``oodscope stream`` with its name.

    Parameters
    ----------
    schedules : each with some of ``share, order, images, batch, delay, drift, burst``; one of each kind unless given.
    images, batch : of the schedules that are not given one by one.
    """

    schedules: list[Schedule] = []
    images: int = Field(default=1000, gt=0)
    batch: int = Field(default=64, gt=0)
    draws: int = Field(default=50, gt=1)
    on: list[str] = []
    baseline: str = ""
    windows: int = Field(default=10, gt=0)
    alarm_share: float = Field(default=0.05, gt=0, lt=1)
    rolling: int = Field(default=200, gt=0)

    def plans(self) -> Sequence[Schedule]:
        """The schedules."""
        return self.schedules or default_schedules(self.images, self.batch)

    @property
    def protocol(self) -> StreamProtocol:
        """What is measured."""
        return StreamProtocol(self.windows, self.alarm_share, self.rolling)


class StreamJob(Task):
    """Streams of images: the keys of an evaluation that say what is judged on what, and how under ``stream``."""

    detectors: Entries = ENTRIES
    stream: StreamSettings = StreamSettings()

    def check(self) -> None:
        super().check()
        check_settings(self.stream, self.detectors)

    def execute(self, progress: Progress) -> tuple[StreamRun, Path]:
        """The run and the folder it was saved to, report included."""
        self.check()
        with reporting_to_store(self.output, f"stream {self.subject}", progress) as sink:
            benchmark = self.open_benchmark(sink)
            classifier = self.build(benchmark, sink).classifier.with_default_transform(benchmark.transform)
            extraction = FromNetwork(classifier, batch_size=self.batch_size, progress=sink)
            found = drawn(self.stream, self.detectors, extraction, benchmark, self.seed, sink)
        return found, saved(found, self.output)


class StreamArraysJob(StrictModel):
    """The same from arrays that were computed elsewhere; see ``evaluate_activations``."""

    activations: ArrayFiles
    stream: StreamSettings = StreamSettings()
    detectors: Entries = ENTRIES
    name: str = "arrays"
    model: str = "arrays"
    classes: str | None = None
    device: str = "auto"
    seed: Seed = 0
    output: str = "runs"

    @classmethod
    def read(cls, declared: Any, where: str, folder: Path = Path()) -> Self:
        """From what a file or a command line declares; paths are relative to ``folder``, the output's is not."""
        job = parse_declared(cls, declared, where)
        classes = None if job.classes is None else str(folder / job.classes)
        return job.model_copy(update={"activations": job.activations.found_from(folder), "classes": classes})

    def execute(self, progress: Progress) -> tuple[StreamRun, Path]:
        """The run and the folder it was saved to, report included."""
        check_writable(Path(self.output))
        check_settings(self.stream, self.detectors)
        with reporting_to_store(self.output, f"stream {self.model} on {self.name}", progress) as sink:
            files: dict[Role, Any] = self.activations.model_dump()  # type: ignore[assignment]  # roles are its fields
            groups: dict[Role, Any] = {role: files.pop(role) for role in GROUPS}
            classes = () if self.classes is None else read_class_names(self.classes)
            extraction, benchmark = open_arrays(
                files,
                groups,
                name=self.name,
                model=self.model,
                classes=classes,
                device=self.device,
            )
            found = drawn(self.stream, self.detectors, extraction, benchmark, self.seed, sink)
        return found, saved(found, self.output)


def check_settings(settings: StreamSettings, entries: Entries) -> None:
    """Names, parameters and schedules, before any image is read."""
    make_entries(entries)
    check_streams(settings.plans(), settings.draws)


def make_entries(entries: Entries) -> list[Detector]:
    """The detectors of a job, not fitted."""
    found = []
    for entry in entries:
        named = {entry: {}} if isinstance(entry, str) else entry
        found += [create_entry(name, **(params or {})) for name, params in named.items()]
    if not found:
        raise UsageError("no detector given; name some, such as knn and oodd")
    return found


def drawn(
    settings: StreamSettings,
    entries: Entries,
    extraction: Extraction,
    benchmark: Benchmark,
    seed: int,
    progress: Progress,
) -> StreamRun:
    """The streams of a job, scored and measured."""
    return stream(
        extraction,
        benchmark,
        make_entries(entries),
        settings.plans(),
        draws=settings.draws,
        on=settings.on,
        baseline=settings.baseline,
        protocol=settings.protocol,
        seed=seed,
        progress=progress,
    )


def saved(found: StreamRun, output: str) -> Path:
    """Save a run with its report below the output folder."""
    folder = found.save(Path(output) / found.record.id)
    write_report(found, folder / "report.html")
    return folder
