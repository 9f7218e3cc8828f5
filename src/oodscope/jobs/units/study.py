"""A study in units: images that are decoded once for several models, and one evaluation of each model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.units import Unit
from oodscope.jobs.encoders import join_encoders, read_encoders
from oodscope.jobs.job import Job, execute
from oodscope.jobs.outcome import Finished
from oodscope.jobs.study import StudyJob, join_study, read_study
from oodscope.jobs.units.divided import PLANS, DividedJob
from oodscope.jobs.units.evaluation import declared_job
from oodscope.jobs.units.together import decoding_units, groups


class DividedStudy(DividedJob):
    """A study of many models."""

    def __init__(self, jobs: list[StudyJob]) -> None:
        self.jobs, self.output = jobs, Path(jobs[0].job.output)

    @classmethod
    def read(cls, keys: Mapping[str, Any], where: str, folder: Path) -> Self:
        return cls(read_study(keys, where, folder.absolute()))

    @property
    def records(self) -> Path:
        # a study that gets another model later finds what is done of the others
        return self.output / PLANS / "records"

    def check(self) -> None:
        for each in self.jobs:
            each.job.check()

    def units(self, workers: int, progress: Progress) -> list[Unit]:
        units, needs = [], dict[str, tuple[str, ...]]()
        for group in groups(self.jobs):
            decoding = decoding_units(group, workers, progress)
            needs |= {each.key: tuple(unit.name for unit in decoding) for each in group}
            units += decoding
        return units + [
            Unit(
                kind="evaluate",
                spec={"job": declared_job(each.job), "labels": each.labels, "content": each.key},
                needs=needs.get(each.key, ()),
                label=f"evaluate {each.model.name}",
            )
            for each in self.jobs
        ]

    def lost(self, plan: WorkPlan) -> list[str]:
        done = [unit.name for unit in _evaluations(plan) if plan.is_done(unit.name)]
        folders = {name: plan.record(name).get("folder") for name in done}
        return [name for name, folder in folders.items() if not (self.output / str(folder) / "run.json").is_file()]

    def join(self, plan: WorkPlan, progress: Progress) -> Finished:
        study, files = join_study(self.jobs, self._folders(plan), self.output)
        return Finished("study", study, files=tuple(files))

    def _folders(self, plan: WorkPlan) -> list[Path]:
        return [self.output / str(plan.record(unit.name)["folder"]) for unit in _evaluations(plan)]


class DividedEncoders(DividedStudy):
    """A scorecard of encoders: the same units, other tables."""

    @classmethod
    def read(cls, keys: Mapping[str, Any], where: str, folder: Path) -> Self:
        return cls(read_encoders(keys, where, folder.absolute()))

    def join(self, plan: WorkPlan, progress: Progress) -> Finished:
        card, files = join_encoders(self.jobs, self._folders(plan), self.output)
        return Finished("encoders", card, files=tuple(files))


def _evaluations(plan: WorkPlan) -> list[Unit]:
    return [unit for unit in plan.units if unit.kind == "evaluate"]


def evaluate(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """Evaluate one model; the run lies in the output folder of the study."""
    job = Job.model_validate({**spec["job"], "output": plan.contents.output})
    _, folder = execute(job, SILENT, spec["labels"])
    return {"folder": folder.name}
