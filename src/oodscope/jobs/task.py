"""DataTask, Task: the keys that jobs share, checked before the first image is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from oodscope.base.config import Seed, StrictModel, parse_declared
from oodscope.base.errors import UsageError
from oodscope.data.benchmark import Benchmark
from oodscope.data.images.labels import read_class_names
from oodscope.data.loading import load_benchmark
from oodscope.detectors.base import Detector
from oodscope.detectors.registry import requested_detector
from oodscope.execution.progress import Progress
from oodscope.jobs.checking import check_writable
from oodscope.jobs.model import BuiltModel, ModelData, ModelSpec, build_classifier, matched
from oodscope.jobs.sets import OwnSets, PlacedSets
from oodscope.models.classifier.network import choose_device

Detectors = Literal["all"] | list[str | dict[str, dict[str, Any]]]
"""``all`` that apply, or names, each perhaps with parameters: ``[msp, {knn: {k: 10}}, react+mls]``."""


class DataTask(StrictModel):
    """Every key has the meaning of the option of ``oodscope evaluate`` with its name."""

    benchmark: str | OwnSets
    root: str | None = None
    images_per_class: int | None = Field(default=None, gt=0)
    skip_unreadable: bool = False
    batch_size: int = Field(default=256, gt=0)
    device: str = "auto"
    seed: Seed = 0
    output: str = "runs"

    @classmethod
    def read(cls, declared: Any, where: str, folder: Path = Path()) -> Self:
        """From what a file or a command line declares; paths are relative to ``folder``, the output's is not."""
        return parse_declared(cls, declared, where).found_from(folder)

    def found_from(self, folder: Path) -> Self:
        """The same with paths relative to ``folder``."""
        update: dict[str, Any] = {"root": None if self.root is None else str(folder / self.root)}
        benchmark: str | PlacedSets = self.benchmark
        if isinstance(benchmark, PlacedSets):
            update["benchmark"] = benchmark.found_from(folder)
        elif benchmark.endswith((".yaml", ".yml")):
            update["benchmark"] = str(folder / benchmark)
        return self.model_copy(update=update)

    def check(self) -> None:
        """Refuse what can be known to fail before any image is read: output folder, device, places."""
        self._check_output()
        choose_device(self.device)
        benchmark: str | PlacedSets = self.benchmark
        if isinstance(benchmark, PlacedSets):
            benchmark.check()

    def _check_output(self) -> None:
        check_writable(Path(self.output))

    def open_benchmark(self, progress: Progress) -> Benchmark:
        """The benchmark that is named, or whose sets are given."""
        if isinstance(self.benchmark, OwnSets):
            return self.benchmark.open(skip_unreadable=self.skip_unreadable, progress=progress)
        return load_benchmark(
            self.benchmark,
            root=self.root,
            images_per_class=self.images_per_class,
            skip_unreadable=self.skip_unreadable,
            progress=progress,
        )


class Task(DataTask):
    """The same with a model, and where its logits have another order than the data's classes, the names of its own."""

    model: ModelSpec
    classes: str | None = None

    def found_from(self, folder: Path) -> Self:
        classes = None if self.classes is None else str(folder / self.classes)
        update = {"model": self.model.found_from(folder), "classes": classes}
        return super().found_from(folder).model_copy(update=update)

    @property
    def subject(self) -> str:
        """What is judged on what, in words."""
        return f"{self.model.architecture} on {self.benchmark if isinstance(self.benchmark, str) else 'own sets'}"

    def check(self) -> None:
        super().check()
        self.model.check()
        if self.classes is not None:
            read_class_names(self.classes)

    def open_benchmark(self, progress: Progress) -> Benchmark:
        """The same with labels in the classes of the model."""
        return matched(super().open_benchmark(progress), self.model, self.classes)

    def build(self, benchmark: Benchmark, progress: Progress) -> BuiltModel:
        """The classifier, for the classes of the benchmark."""
        return build_classifier(self.model, ModelData.of(benchmark), device=self.device, progress=progress)


def make_detectors(entries: Detectors) -> str | list[Detector]:
    """The detectors of a job, not fitted, or ``all``; an unknown name or parameter is an error here."""
    if entries == "all":
        return "all"
    return [detector for entry in entries for detector in _made(entry)]


def _made(entry: str | dict[str, dict[str, Any]]) -> Sequence[Detector]:
    if isinstance(entry, str):
        return [requested_detector(entry)]
    if not entry:
        raise UsageError("an empty entry stands among the detectors")
    return [requested_detector(name, **params) for name, params in entry.items()]
