"""An evaluation in units: networks that are trained, blocks of images, groups of detectors; and what joins them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from oodscope.activations.probes.probe import Probe
from oodscope.activations.store.store import BLOCK, SHARD
from oodscope.base.errors import OodscopeError
from oodscope.base.files import file_sha256
from oodscope.base.hashing import canonical_json, fingerprint
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.detectors.base import Detector
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.units import Unit
from oodscope.jobs.job import Job, asked_detectors, execute
from oodscope.jobs.model import BuiltModel, matched
from oodscope.jobs.outcome import Finished
from oodscope.jobs.units.divided import DividedJob
from oodscope.protocols.base import Protocol
from oodscope.protocols.registry import read_protocols
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.pipeline import choose_detectors
from oodscope.runs.evaluation.scoring import TESTED, join_scores, known_extractions, score_benchmark
from oodscope.runs.evaluation.seeds import over_seeds

SCORES = "scores"
"""The folder of a plan that tables of scores lie in."""

GROUP = 12
"""Detectors that one unit fits and scores: they share reductions of the training features."""

IMAGES_PER_SECOND = 1000.0
"""Taken where nothing is known yet, for the estimates of a plan."""


class OpenedJob:
    """A job with its benchmark and network, opened once for many units of one process.

    Parameters
    ----------
    data : its benchmark, in the classes of the data, where somebody has opened it already.
    """

    def __init__(self, job: Job, progress: Progress = SILENT, data: Benchmark | None = None) -> None:
        self.job, self.progress, self.data = job, progress, data

    @cached_property
    def benchmark(self) -> Benchmark:
        if self.data is None:
            return self.job.open_benchmark(self.progress)
        return matched(self.data, self.job.model, self.job.classes)

    @cached_property
    def protocols(self) -> list[Protocol]:
        return list(read_protocols(self.job.protocols))

    @cached_property
    def prepared(self) -> Benchmark:
        """As protocols divide it."""
        prepared = self.benchmark
        for protocol in self.protocols:
            protocol.check(self.benchmark)
            prepared = protocol.prepare(prepared, self.job.seed)
        return prepared

    @property
    def roles(self) -> list[Any]:
        return [role for protocol in self.protocols for role in protocol.roles]

    @cached_property
    def built(self) -> BuiltModel:
        return self.job.build(self.benchmark, self.progress)

    @cached_property
    def extraction(self) -> FromNetwork:
        classifier = self.built.classifier.with_default_transform(self.benchmark.transform)
        return FromNetwork(classifier, None, self.job.batch_size, self.progress)

    @cached_property
    def detectors(self) -> list[Detector]:
        asked = asked_detectors(self.job)
        skip = self.job.skip_inapplicable
        return choose_detectors(asked, self.extraction, self.benchmark, skip_inapplicable=skip)[0]

    def sets(self) -> dict[str, ImageSet]:
        """Those whose activations an evaluation reads, by name."""
        sets = {images.name: images for role, images in self.prepared.members() if role in (*TESTED, *self.roles)}
        scored = self.prepared.scored_train
        if scored is not None and "id_train" in self.roles:
            sets[scored.name] = scored
        learned = [self.prepared.id_train, self.prepared.id_val]
        if self.job.tune == "ood_val":
            learned.append(self.prepared.ood_val)
        return {images.name: images for images in learned if images is not None} | sets

    def probes(self, name: str) -> tuple[Probe, ...]:
        """What is known before any fit to be extracted of a set; a search may ask for more once it has chosen."""
        wanted = known_extractions(self.prepared, self.detectors, self.job.tune, self.roles)
        return tuple(dict.fromkeys(wanted.get(name, ())))


@lru_cache(maxsize=4)
def _opened(declared: str) -> OpenedJob:
    return OpenedJob(Job.model_validate(json.loads(declared)))


def opened(spec: Mapping[str, Any]) -> OpenedJob:
    """The job of a unit; processes that do several units open it once."""
    return _opened(canonical_json(spec["job"]))


def declared_job(job: Job) -> dict[str, Any]:
    """What decides the result of an evaluation, as JSON; where it is written and on which device does not."""
    return job.model_dump(mode="json", exclude={"output", "as_seeds"})


class DividedEvaluation(DividedJob):
    """An evaluation, or one for each seed."""

    def __init__(self, job: Job) -> None:
        self.job, self.output = job, Path(job.output)

    @classmethod
    def read(cls, keys: Mapping[str, Any], where: str, folder: Path) -> "DividedEvaluation":
        return cls(Job.read(keys, where, folder.absolute()))

    def check(self) -> None:
        self.job.check()

    def units(self, workers: int, progress: Progress) -> list[Unit]:
        return [unit for each in self.job.each_seed() for unit in EvaluationUnits(each, workers).units(progress)]

    def join(self, plan: WorkPlan, progress: Progress) -> Finished:
        runs = []
        for each in self.job.each_seed():
            declared = declared_job(each)
            units = [unit for unit in plan.units if _belongs(unit, declared)]
            runs.append(execute(each, progress, score=ScoredByUnits(plan, units)))
        if not self.job.as_seeds:
            return Finished("evaluation", runs[0][0], tuple(runs))
        return Finished("seeds", over_seeds([result for result, _ in runs]), tuple(runs))


def _belongs(unit: Unit, declared: dict[str, Any]) -> bool:
    """Whether a unit is one of this job, or trains a network of its ensemble."""
    job = unit.spec["job"]
    return bool(job == declared or (unit.kind == "train" and {**job, "model": None} == {**declared, "model": None}))


@dataclass(frozen=True)
class EvaluationUnits:
    """How the evaluation of one network, or of one ensemble, is divided.

    Parameters
    ----------
    workers : for whom; more of them get smaller pieces.
    """

    job: Job
    workers: int = 1

    def units(self, progress: Progress = SILENT) -> list[Unit]:
        """In the order in which they are best begun."""
        opened = OpenedJob(self.job, progress)
        spec = {"job": declared_job(self.job), "content": self._content(opened)}
        training = list(self._trainings(spec))
        first = tuple(unit.name for unit in training)
        extraction = [unit for images in opened.sets().values() for unit in self._extractions(spec, images, first)]
        needed = (*first, *(unit.name for unit in extraction))
        return [*training, *extraction, *self._scores(spec, needed, opened)]

    def _content(self, opened: OpenedJob) -> str:
        """Of the files and images that the job names: other bytes under the same names are another plan."""
        names = [*self.job.model.files, *([self.job.benchmark] if isinstance(self.job.benchmark, str) else [])]
        files = [file_sha256(Path(name)) for name in names if Path(name).is_file()]
        return fingerprint(files, [[role, images.fingerprint] for role, images in opened.prepared.members()])

    def _trainings(self, spec: Mapping[str, Any]) -> Iterator[Unit]:
        if self.job.model.train is None:
            return
        for number, model in enumerate(self.job.model.each_network()):
            job = {**spec["job"], "model": model.model_dump(mode="json")}
            yield Unit(
                kind="train",
                spec={**spec, "job": job},
                device="gpu",
                label=f"train network {number} of {self.job.subject}",
            )

    def _extractions(self, spec: Mapping[str, Any], images: ImageSet, needs: tuple[str, ...]) -> Iterator[Unit]:
        for start, stop in block_ranges(images, self.workers):
            yield Unit(
                kind="extract",
                spec={**spec, "set": images.name, "blocks": [start, stop]},
                needs=needs,
                seconds=(stop - start) * BLOCK / IMAGES_PER_SECOND,
                label=f"extract {images.name}, blocks {start} to {stop - 1}",
            )

    def _scores(self, spec: Mapping[str, Any], needs: tuple[str, ...], opened: OpenedJob) -> Iterator[Unit]:
        # 'all' means all that apply, which only the network can tell: a group is a part of the list, not names
        asked = asked_detectors(self.job)
        known = len(asked) if isinstance(asked, list) else 4 * GROUP
        groups = max(min(self.workers, known), -(-known // GROUP)) if self.workers > 1 else 1
        for number in range(groups):
            part = {**spec, "group": [number, groups]}
            yield Unit(kind="score", spec=part, needs=needs, label=f"score detectors, group {number + 1} of {groups}")


def block_ranges(images: ImageSet, workers: int) -> Iterator[tuple[int, int]]:
    """The blocks of a set in pieces of at most a shard, first and last but one; smaller ones for more workers."""
    blocks = np.unique(images.rows // BLOCK)
    size = max(1, min(SHARD, -(-len(blocks) // (4 * workers)) if workers > 1 else SHARD))
    for start in range(0, len(blocks), size):
        part = blocks[start : start + size]
        yield int(part[0]), int(part[-1]) + 1


def in_blocks(images: ImageSet, start: int, stop: int) -> ImageSet:
    """The images of a set that lie in some blocks of its source."""
    blocks = images.rows // BLOCK
    return images.take(np.flatnonzero((blocks >= start) & (blocks < stop)), images.name)


def train(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """Train one network; it is kept in the cache, where every other unit finds it."""
    return {"model": opened(spec).built.classifier.fingerprint[:16]}


def extract(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """Activations of some blocks of a set, published in the store."""
    job = opened(spec)
    part = in_blocks(job.sets()[spec["set"]], *spec["blocks"])
    before = job.extraction.forwarded
    job.extraction.extract(part, job.probes(spec["set"]))
    return {"forwarded": job.extraction.forwarded - before}


def score(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """Fit and score a group of detectors; the table of scores is published in the plan's folder."""
    job, (number, groups) = opened(spec), spec["group"]
    detectors, before = job.detectors[number::groups], job.extraction.forwarded
    if not detectors:
        return {"detectors": []}
    context = {"fingerprint": job.extraction.fingerprint}
    table = score_benchmark(
        job.extraction, job.prepared, detectors, track=job.job.tune, roles=job.roles, context=context
    )
    with TemporaryDirectory() as folder:
        table.save(Path(folder) / "scores.parquet")
        plan.home.create(_table_name(spec), (Path(folder) / "scores.parquet").read_bytes())
    names = [each.id for each in detectors]
    devices = sorted(job.extraction.devices)
    return {"detectors": names, "forwarded": job.extraction.forwarded - before, "devices": devices}


def _table_name(spec: Mapping[str, Any]) -> str:
    return f"{SCORES}/{fingerprint(dict(spec))[:16]}.parquet"


class ScoredByUnits:
    """Stands for ``score_benchmark`` in an evaluation whose units are done: their tables, joined."""

    def __init__(self, plan: WorkPlan, units: Sequence[Unit]) -> None:
        self.plan, self.units = plan, [unit for unit in units if unit.kind == "score"]
        self.records = [plan.record(unit.name) for unit in units]

    def __call__(
        self,
        extraction: FromNetwork,
        benchmark: Benchmark,
        detectors: Sequence[Detector],
        *,
        context: Mapping[str, Any],
        **known: Any,
    ) -> ScoreTable:
        made_on = {device for record in self.records for device in record.get("devices", ())}
        extraction.credit(sum(int(record.get("forwarded", 0)) for record in self.records), made_on)
        # a group without a detector that applies has no table
        units = [unit for unit in self.units if self.plan.record(unit.name).get("detectors")]
        tables = [ScoreTable.load(self.plan.home.local(_table_name(unit.spec))) for unit in units]
        if any(table.context.fingerprint != extraction.fingerprint for table in tables):
            raise OodscopeError(f"{self.plan.folder}: its scores are of another network than the job's; plan it again")
        return join_scores(tables, [each.id for each in detectors], context)
