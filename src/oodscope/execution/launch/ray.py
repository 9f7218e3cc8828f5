"""Ray: workers as long-lived actors of a cluster. Placement, restarts and retries are Ray's."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from oodscope.base.errors import OodscopeError
from oodscope.base.registry import load_target
from oodscope.execution.launch.launcher import Launcher, refuse_unfinished
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Advance, Progress
from oodscope.execution.units import Unit
from oodscope.execution.work import Worked, do_one

ADDRESS = "RAY_ADDRESS"
RETRIES = 3
"""Times that Ray tries a unit again whose process died."""

MOST_LOSSES, _WAIT = 20, 1.0
"""Times that a unit is handed out again because its worker could not be reached, and seconds before the next time."""


@dataclass(frozen=True)
class RayLauncher(Launcher):
    """Units as calls of actors, each with a GPU where the cluster has some; an actor keeps imports and sets warm.

    Ray places actors, starts one again whose node died, and repeats the call that it was at. The cluster is that of
    ``$RAY_ADDRESS``, or one that is started here and ends with the work. All nodes must see the plan's folder and the
    cache (``OODSCOPE_CACHE``).

    Parameters
    ----------
    target : the function that does units, by name, which workers import.
    """

    target: str = "oodscope.jobs.units.kinds:do"

    def run(self, plan: WorkPlan, progress: Progress = SILENT) -> None:
        ray = _ray()
        with _cluster(ray), progress.stage("work", len(plan.units)) as advance:
            resources = ray.cluster_resources()
            gpus = int(resources.get("GPU", 0))
            count = self.workers or gpus or max(1, int(resources.get("CPU", 1)))
            kind = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_restarts=-1, max_task_retries=RETRIES)(_Actor)
            environment = _environment()
            actors = [kind.options(runtime_env=environment).remote() for _ in range(count)]
            _dispatch(ray, actors, plan, advance, self.target)
            for actor in actors:
                ray.kill(actor)
        refuse_unfinished(plan)


class _Actor:
    """One worker process of the cluster."""

    def do(self, folder: str, unit: str, target: str) -> str:
        """Do one unit and record it, as ``oodscope work`` does; its name."""
        asked, plan = Unit.model_validate_json(unit), WorkPlan(folder)
        if not plan.is_done(asked.name):
            do_one(plan, asked, load_target("function", target, target), Worked())
        return asked.name


def _dispatch(ray: Any, actors: Sequence[Any], plan: WorkPlan, advance: Advance, target: str) -> None:
    """Hand a unit whose needs are done to an actor that is free, until none is left."""
    folder = str(plan.local_folder().absolute())
    waiting = [unit for unit in plan.units if not plan.is_done(unit.name)]
    advance(len(plan.units) - len(waiting))
    free, busy, lost = list(actors), dict[Any, Any](), dict[str, int]()
    while waiting or busy:
        for unit in [each for each in waiting if all(plan.is_done(name) for name in each.needs)]:
            if not free:
                break
            actor = free.pop(0)
            busy[actor.do.remote(folder, unit.model_dump_json(), target)] = actor, unit
            waiting.remove(unit)
        if not busy:
            return  # what is left needs what has failed
        finished, _ = ray.wait(list(busy), num_returns=1)
        for reference in finished:
            actor, unit = busy.pop(reference)
            free.append(actor)
            try:
                ray.get(reference)
                advance(1)
            except ray.exceptions.RayActorError as error:
                # its node is gone, and Ray starts it elsewhere; until then it answers nothing
                lost[unit.name] = lost.get(unit.name, 0) + 1
                if lost[unit.name] > MOST_LOSSES:
                    said = str(error).splitlines()[0]
                    raise OodscopeError(f"ray: {unit}: its worker was lost {MOST_LOSSES} times ({said})") from error
                waiting.insert(0, unit)
                time.sleep(_WAIT)


def _environment() -> dict[str, Any]:
    """What a worker on another node needs to run the same code on the same cache."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("OODSCOPE_")}
    threads = {name: os.environ.get(name, "1") for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    path = os.pathsep.join(filter(None, sys.path))
    return {"env_vars": {**kept, **threads, "PYTHONPATH": path}}


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise OodscopeError("--on ray needs the extra 'ray': pip install 'oodscope[ray]'") from error
    return ray


@contextlib.contextmanager
def _cluster(ray: Any) -> Iterator[None]:
    """The cluster that is named, or one of this machine that ends with the work."""
    ours = not ray.is_initialized()
    if ours:
        address = os.environ.get(ADDRESS)
        try:
            ray.init(address=address, include_dashboard=False, log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            where = address or "a cluster of this machine"
            raise OodscopeError(f"ray: cannot reach {where}: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        if ours:
            ray.shutdown()
