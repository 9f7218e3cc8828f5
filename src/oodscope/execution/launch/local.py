"""Local: worker processes of this machine, one for each GPU or for each share of the cores."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from oodscope.execution.launch.launcher import Launcher, refuse_unfinished
from oodscope.execution.lookahead import cores
from oodscope.execution.plan import WorkPlan
from oodscope.execution.progress import SILENT, Advance, Progress

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_POLL, _LOOK = 0.1, 1.0
"""Seconds between two looks at the processes, and at what they have done: the latter asks for every unit."""
MOST_DEATHS = 3
"""Of one worker in a row without a unit finished in between, before it is given up."""


@dataclass(frozen=True)
class LocalLauncher(Launcher):
    """``oodscope work PLAN --share i/n`` in ``n`` processes.

    A worker that is killed is started again and goes on; one that dies three times without finishing a unit stays
    away, and the others take over its share. Each has one thread, unless ``OMP_NUM_THREADS`` says otherwise, and sees
    one GPU where there are several.
    """

    def count(self) -> int:
        return self.workers or len(_gpus()) or cores()

    def run(self, plan: WorkPlan, progress: Progress = SILENT) -> None:
        gpus, count = _gpus(), self.count()
        with _processes(plan, count, gpus) as processes, progress.stage("work", len(plan.units)) as advance:
            known, looked = 0, 0.0
            while any(process.alive() for process in processes):
                if time.monotonic() - looked > _LOOK:
                    known, looked = _advanced(plan, known, advance), time.monotonic()
                time.sleep(_POLL)
            _advanced(plan, known, advance)
        refuse_unfinished(plan)


class _Process:
    """One worker, started again when something kills it."""

    def __init__(self, plan: WorkPlan, number: int, count: int, environment: Mapping[str, str]) -> None:
        self.plan, self.deaths, self._done = plan, 0, -1
        self.command = [
            sys.executable,
            "-m",
            "oodscope",
            "work",
            str(plan.folder),
            "--share",
            f"{number}/{count}",
            "-q",
        ]
        self.environment = dict(environment)
        self.log = plan.local_folder() / "logs" / f"worker-{number}.txt"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def alive(self) -> bool:
        status = self.process.poll()
        if status is None:
            return True
        if status >= 0:  # it ended by itself; what failed is recorded
            return False
        done = sum(self.plan.is_done(unit.name) for unit in self.plan.units)
        self.deaths = self.deaths + 1 if done == self._done else 1
        self._done = done
        if self.deaths > MOST_DEATHS or done == len(self.plan.units):
            return False
        self.start()
        return True

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()


@contextmanager
def _processes(plan: WorkPlan, count: int, gpus: list[str]) -> Iterator[list[_Process]]:
    processes: list[_Process] = []
    try:
        for number in range(count):
            environment = {**dict.fromkeys(_THREADS, "1"), **os.environ}
            # the code that this process runs, wherever it was found
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
            if len(gpus) > 1:
                environment["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)]
            processes.append(_Process(plan, number, count, environment))
        yield processes
    finally:
        for process in processes:
            process.stop()


def _advanced(plan: WorkPlan, known: int, advance: Advance) -> int:
    done = sum(plan.is_done(unit.name) for unit in plan.units)
    if done > known:
        advance(done - known)
    return max(done, known)


def _gpus() -> list[str]:
    """The GPUs that this process may use, by the names that CUDA_VISIBLE_DEVICES gives them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name.strip()]
    devices = sorted(Path("/dev").glob("nvidia[0-9]*"))
    return [path.name.removeprefix("nvidia") for path in devices]
