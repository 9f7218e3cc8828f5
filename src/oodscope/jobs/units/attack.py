"""An attack in units: the searches of one detector under one variation."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from oodscope.base.errors import OodscopeError
from oodscope.base.hashing import canonical_json
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.units import Unit
from oodscope.jobs.attack import AttackJob, PreparedAttack, execute_attack
from oodscope.jobs.outcome import Finished
from oodscope.jobs.units.divided import DividedJob


class DividedAttack(DividedJob):
    """An attack on several detectors."""

    def __init__(self, job: AttackJob) -> None:
        self.job, self.output = job, Path(job.output)

    @classmethod
    def read(cls, keys: Mapping[str, Any], where: str, folder: Path) -> "DividedAttack":
        return cls(AttackJob.read(keys, where, folder.absolute()))

    def check(self) -> None:
        self.job.check()

    def units(self, workers: int, progress: Progress) -> list[Unit]:
        prepared = PreparedAttack(self.job, progress)
        spec = {"job": self.job.model_dump(mode="json", exclude={"output"}), "identity": prepared.identity}
        return [
            Unit(
                kind="search",
                spec={**spec, "detector": detector.id, "variation": number},
                device="gpu",
                label=f"attack {detector.id}, variation {number + 1} of {len(prepared.variations)}",
            )
            for detector in prepared.detectors
            for number in range(len(prepared.variations))
        ]

    def join(self, plan: WorkPlan, progress: Progress) -> Finished:
        attack, place = execute_attack(self.job, progress)
        return Finished("attack", attack, runs=((attack.result, place),))


@lru_cache(maxsize=1)
def _prepared(declared: str) -> PreparedAttack:
    return PreparedAttack(AttackJob.model_validate(json.loads(declared)), SILENT)


def search(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """Search the worst outliers of one detector under one variation; the searches lie in the folder of the attack."""
    prepared = _prepared(canonical_json({**spec["job"], "output": plan.contents.output}))
    if prepared.identity != spec["identity"]:
        raise OodscopeError("the network or the images are not those that were planned; plan it again")
    detectors = [each for each in prepared.detectors if each.id == spec["detector"]]
    prepared.attack(detectors, [prepared.variations[spec["variation"]]])
    return {}
