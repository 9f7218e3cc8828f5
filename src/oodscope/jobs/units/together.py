"""Networks of a study that share decoded images: each set is read once for several of them."""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from oodscope.activations.store.store import BLOCK, ActivationStore
from oodscope.base.hashing import canonical_json
from oodscope.data.images.arrays import ArraySource
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.units import Unit
from oodscope.jobs.job import Job
from oodscope.jobs.study import StudyJob
from oodscope.jobs.task import DataTask
from oodscope.jobs.units.evaluation import (
    IMAGES_PER_SECOND,
    OpenedJob,
    block_ranges,
    declared_job,
    in_blocks,
)

TOGETHER = 8
"""Networks that read one stream of images: decoding is then an eighth, and all of them fit a GPU."""

_LOG = logging.getLogger(__name__)


def groups(jobs: Sequence[StudyJob]) -> list[tuple[StudyJob, ...]]:
    """Models that decode together: those that come with weights, up to eight; a training takes longer than decoding."""
    ready = [each for each in jobs if each.job.model.train is None]
    found = [tuple(ready[start : start + TOGETHER]) for start in range(0, len(ready), TOGETHER)]
    return [group for group in found if len(group) > 1]


def decoding_units(group: Sequence[StudyJob], workers: int, progress: Progress) -> list[Unit]:
    """Pieces of every set that is decoded; none for images that lie open in memory."""
    opened = OpenedJob(group[0].job, progress)
    spec = {"jobs": [declared_job(each.job) for each in group], "content": [each.key for each in group]}
    return [
        Unit(
            kind="decode",
            spec={**spec, "set": images.name, "blocks": [start, stop]},
            seconds=(stop - start) * BLOCK * len(group) / IMAGES_PER_SECOND,
            label=f"extract {images.name} for {len(group)} networks, blocks {start} to {stop - 1}",
        )
        for images in opened.sets().values()
        if not isinstance(images.source, ArraySource)
        for start, stop in block_ranges(images, workers)
    ]


class OpenedTogether:
    """Jobs on one benchmark, each with its network; those that cannot be built are left to their own evaluation."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        data = DataTask.open_benchmark(jobs[0], SILENT)
        self.parts: list[OpenedJob] = []
        self.left_out: list[str] = []
        for job in jobs:
            part = OpenedJob(job, data=data)
            try:
                part.detectors  # noqa: B018  (asked for, it builds the network)
                self.parts.append(part)
            except Exception as error:  # its evaluation says so, and the others go on
                self.left_out.append(f"{job.subject}: {error}")


@lru_cache(maxsize=1)
def _opened(declared: str) -> OpenedTogether:
    return OpenedTogether([Job.model_validate(each) for each in json.loads(declared)])


def decode(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """Activations of some blocks of a set under several networks, published in the store.

    It never fails for the sake of one network: what is not there afterwards, each evaluation extracts by itself.
    """
    opened = _opened(canonical_json(spec["jobs"]))
    if not opened.parts:
        return {"left_out": opened.left_out, "forwarded": 0}
    first, store = opened.parts[0], ActivationStore()
    part = in_blocks(first.sets()[spec["set"]], *spec["blocks"])
    try:
        store.extract_many(
            [each.extraction.classifier for each in opened.parts],
            part,
            probes=[each.probes(spec["set"]) for each in opened.parts],
            batch_size=first.job.batch_size,
        )
    except Exception as error:
        _LOG.info("%s is not decoded together: %s", spec["set"], error)
        return {"left_out": [*opened.left_out, str(error)], "forwarded": store.forwarded}
    return {"left_out": opened.left_out, "forwarded": store.forwarded}
