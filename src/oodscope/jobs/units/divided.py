"""Divided jobs: a declaration as units, done by a launcher, and joined by one process."""

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oodscope.base.errors import UsageError
from oodscope.base.hashing import fingerprint
from oodscope.execution.launch.launcher import Launcher
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.units import Unit
from oodscope.jobs.outcome import Finished

PLANS = "plans"
"""The folder of the output that plans of commands lie in while they are worked on."""


class DividedJob(ABC):
    """A job that is done in units.

    ``units`` are data, ``join`` is a pure function of what they published: whoever did them, the result is the same.
    """

    output: Path

    @abstractmethod
    def check(self) -> None:
        """Refuse what can be known to fail, before anything is planned."""

    @abstractmethod
    def units(self, workers: int, progress: Progress) -> list[Unit]:
        """In the order in which they are best begun.

        Parameters
        ----------
        workers : for how many; pieces may be smaller where there are more of them.
        """

    @abstractmethod
    def join(self, plan: WorkPlan, progress: Progress) -> Finished:
        """The result of a plan whose units are done."""

    def lost(self, plan: WorkPlan) -> list[str]:
        """Units that are recorded as done and whose results somebody has deleted since."""
        return []

    @property
    def records(self) -> Path | None:
        """Where plans of this output share what is done; ``None``: each plan for itself."""
        return None


@dataclass(frozen=True)
class Declared:
    """A job by its keys, what messages begin with, and what its paths are relative to."""

    kind: str
    keys: Mapping[str, Any]
    where: str
    folder: Path

    def divided(self) -> DividedJob:
        """The job in units, or one line that says that its kind is not divided."""
        # imports wait: what is imported depends on the kind
        if self.kind == "evaluation":
            from oodscope.jobs.units.evaluation import DividedEvaluation

            return DividedEvaluation.read(self.keys, self.where, self.folder)
        if self.kind == "study":
            from oodscope.jobs.units.study import DividedStudy

            return DividedStudy.read(self.keys, self.where, self.folder)
        if self.kind == "encoders":
            from oodscope.jobs.units.study import DividedEncoders

            return DividedEncoders.read(self.keys, self.where, self.folder)
        if self.kind == "crossval":
            from oodscope.jobs.units.crossval import DividedCrossval

            return DividedCrossval.read(self.keys, self.where, self.folder)
        if self.kind == "attack":
            from oodscope.jobs.units.attack import DividedAttack

            return DividedAttack.read(self.keys, self.where, self.folder)
        raise UsageError(
            f"{self.where}: a job of the kind {self.kind!r} is one piece of work; run it without --workers and --on"
        )


def write_plan(
    declared: Declared, folder: Path | str | None = None, *, workers: int = 1, progress: Progress = SILENT
) -> WorkPlan:
    """Divide a job and write its plan.

    Parameters
    ----------
    folder : of the plan; by default one in the output folder, named by the units.
    """
    job = declared.divided()
    job.check()
    units = job.units(workers, progress)
    shared = job.records
    if folder is None:
        folder = job.output / PLANS / fingerprint([unit.name for unit in units])[:16]
    records = "." if shared is None else str(shared.absolute())
    plan = WorkPlan.create(
        folder,
        units,
        output=job.output,
        job=_plain(declared.keys),
        where=declared.where,
        base=declared.folder,
        records=records,
    )
    for name in job.lost(plan):
        plan.forget(name)
    plan.forgive()
    return plan


def join_plan(plan: WorkPlan, kind: str, progress: Progress = SILENT) -> Finished:
    """The result of a plan whose units are done."""
    contents = plan.contents
    declared = Declared(kind, {**contents.job, "output": contents.output}, contents.where, Path(contents.folder))
    return declared.divided().join(plan, progress)


def run_divided(declared: Declared, launcher: Launcher, progress: Progress = SILENT) -> Finished | WorkPlan:
    """Plan, do and join; the plan itself where the launcher only hands it to a queue.

    The plan's folder goes when its result is there: a later run of the same command must not find scores of what may
    have changed since.
    """
    plan = write_plan(declared, workers=launcher.count(), progress=progress)
    launcher.run(plan, progress)
    if not launcher.waits:
        return plan
    finished = join_plan(plan, declared.kind, progress)
    shutil.rmtree(plan.local_folder(), ignore_errors=True)
    return finished


def _plain(keys: Mapping[str, Any]) -> dict[str, Any]:
    # a declaration comes from YAML or a command line: what JSON cannot say is no part of either
    plain: dict[str, Any] = json.loads(json.dumps(dict(keys), default=str))
    return plain
