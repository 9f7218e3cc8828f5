"""ActivationsJob, ScoresJob: evaluations of arrays and of plain scores as configurations."""

from pathlib import Path
from typing import Any, Self

from oodscope.base.config import Seed, StrictModel, parse_declared
from oodscope.base.errors import UsageError
from oodscope.data.images.labels import read_class_names
from oodscope.execution.progress import Progress
from oodscope.jobs.storing import reporting_to_store, save_result
from oodscope.jobs.task import Detectors, make_detectors
from oodscope.metrics.interval import Intervals
from oodscope.metrics.metric import Tuning
from oodscope.protocols.registry import read_protocols
from oodscope.runs.evaluation.activations import evaluate_activations
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.scores import evaluate_scores


class ArrayFiles(StrictModel):
    """Files of arrays by role; ``near``, ``far`` and ``csid`` hold several by name."""

    id_test: str
    id_train: str | None = None
    id_val: str | None = None
    near: dict[str, str] = {}
    far: dict[str, str] = {}
    csid: dict[str, str] = {}
    ood_val: str | None = None

    def found_from(self, folder: Path) -> Self:
        """The same with paths relative to ``folder``."""
        update: dict[str, Any] = {
            role: {name: str(folder / each) for name, each in given.items()}
            if isinstance(given, dict)
            else given and str(folder / given)
            for role, given in self.model_dump().items()
        }
        return self.model_copy(update=update)


class ArrayTask(StrictModel):
    """The keys that both share. Every key has the meaning of the parameter of that name in ``evaluate_activations``."""

    name: str = "arrays"
    model: str = "arrays"
    detectors: Detectors = "all"
    protocols: list[str | dict[str, dict[str, Any] | None]] = ["standard"]
    tune: Tuning = "default"
    seed: Seed = 0
    intervals: Intervals = "full"
    recipe: str = ""
    output: str = "runs"


class ActivationsJob(ArrayTask):
    """One evaluation of arrays, and its execution up to the saved result."""

    activations: ArrayFiles
    classes: str | None = None
    device: str = "auto"

    @classmethod
    def read(cls, declared: Any, where: str, folder: Path = Path()) -> Self:
        """From what a file or a command line declares; paths are relative to ``folder``, the output's is not."""
        job = parse_declared(cls, declared, where)
        classes = None if job.classes is None else str(folder / job.classes)
        return job.model_copy(update={"activations": job.activations.found_from(folder), "classes": classes})

    def execute(self, progress: Progress) -> tuple[Result, Path]:
        """The result and the folder it was saved to, report included."""
        read_protocols(self.protocols)
        detectors = make_detectors(self.detectors)
        with reporting_to_store(self.output, f"evaluate {self.model} on {self.name}", progress) as sink:
            result = evaluate_activations(
                **self.activations.model_dump(),
                detectors=detectors,
                protocols=self.protocols,
                name=self.name,
                model=self.model,
                classes=() if self.classes is None else read_class_names(self.classes),
                tune=self.tune,
                seed=self.seed,
                intervals=self.intervals,
                recipe=self.recipe,
                device=self.device,
                progress=sink,
            )
        return result, save_result(result, self.output)


class ScoresJob(ArrayTask):
    """One evaluation of plain scores, and its execution up to the saved result; ``detectors`` chooses columns."""

    scores: str
    name: str = "scores"
    model: str = "scores"

    @classmethod
    def read(cls, declared: Any, where: str, folder: Path = Path()) -> Self:
        """From what a file or a command line declares; paths are relative to ``folder``, the output's is not."""
        job = parse_declared(cls, declared, where)
        return job.model_copy(update={"scores": str(folder / job.scores)})

    def execute(self) -> tuple[Result, Path]:
        """The result and the folder it was saved to, report included."""
        if self.detectors != "all" and not all(isinstance(each, str) for each in self.detectors):
            raise UsageError("detectors of a score file are names of its columns, without parameters")
        result = evaluate_scores(
            self.scores,
            detectors=None if self.detectors == "all" else [str(each) for each in self.detectors],
            protocols=self.protocols,
            name=self.name,
            model=self.model,
            tune=self.tune,
            seed=self.seed,
            intervals=self.intervals,
            recipe=self.recipe,
        )
        return result, save_result(result, self.output)
