"""A cross-validation in units: the embeddings of each set, then batches of draws that are trained together."""

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from oodscope.base.hashing import canonical_json, fingerprint
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.units import Unit
from oodscope.jobs.crossval import CrossvalJob, execute_crossval, open_crossval
from oodscope.jobs.outcome import Finished
from oodscope.jobs.units.divided import DividedJob
from oodscope.runs.crossval.draws import distinct_sets
from oodscope.runs.crossval.engine import CrossvalWork
from oodscope.runs.crossval.frozen import FrozenEmbeddings


class OpenedCrossval:
    """A job with its sets and trainer, opened once for many units of one process."""

    def __init__(self, job: CrossvalJob) -> None:
        self.job = job

    @cached_property
    def work(self) -> CrossvalWork:
        pairs, trainer = open_crossval(self.job, SILENT)
        return CrossvalWork(self.job.plan, pairs, trainer, self.job.output, allow_leak=self.job.allow_leak)


@lru_cache(maxsize=2)
def _opened(declared: str) -> OpenedCrossval:
    return OpenedCrossval(CrossvalJob.model_validate(json.loads(declared)))


def _of(spec: Mapping[str, Any], plan: WorkPlan) -> OpenedCrossval:
    return _opened(canonical_json({**spec["job"], "output": plan.contents.output}))


class DividedCrossval(DividedJob):
    """A cross-validation."""

    def __init__(self, job: CrossvalJob) -> None:
        self.job, self.output = job, Path(job.output)

    @classmethod
    def read(cls, keys: Mapping[str, Any], where: str, folder: Path) -> "DividedCrossval":
        return cls(CrossvalJob.read(keys, where, folder.absolute()))

    def check(self) -> None:
        self.job.check()

    def units(self, workers: int, progress: Progress) -> list[Unit]:
        pairs, trainer = open_crossval(self.job, progress)
        work = CrossvalWork(self.job.plan, pairs, trainer, self.output, allow_leak=self.job.allow_leak)
        content = fingerprint([images.fingerprint for images in distinct_sets(work.pairs)], work.journal.key)
        declared = self.job.model_dump(mode="json", exclude={"output"}, by_alias=True)
        spec = {"job": declared, "content": content}
        embedding = [
            Unit(kind="embed", spec={**spec, "set": images.name}, label=f"embed {images.name}")
            for images in (distinct_sets(work.pairs) if isinstance(trainer, FrozenEmbeddings) else ())
        ]
        needs = tuple(unit.name for unit in embedding)
        return embedding + [
            Unit(
                kind="fold",
                spec={**spec, "batch": number},
                needs=needs,
                device="gpu",
                label=f"draws {batch[0].name} to {batch[-1].name}",
            )
            for number, batch in enumerate(work.batches)
        ]

    def join(self, plan: WorkPlan, progress: Progress) -> Finished:
        outcome, files = execute_crossval(self.job, progress)
        return Finished("crossval", outcome, files=tuple(files))


def embed(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """The embeddings of one set, published in the store."""
    work = _of(spec, plan).work
    work.trainer.open([images for images in distinct_sets(work.pairs) if images.name == spec["set"]], SILENT)
    return {}


def fold(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """Train and score one batch of draws; each is recorded in the journal of the cross-validation."""
    work = _of(spec, plan).work
    costs = work.do([work.batches[spec["batch"]]])
    return {"costs": costs}
