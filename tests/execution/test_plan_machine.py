"""Any number of workers in any order, told to end, failing or killed: no unit is lost, and what is published stands."""

import contextlib
import os
import socket
import tempfile
import threading
from pathlib import Path
from queue import Queue

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from oodscope.execution import plan as plans
from oodscope.execution import work as working
from oodscope.execution.plan import WorkPlan
from oodscope.execution.units import Share, Unit
from oodscope.execution.work import StoppedError, work
from tests.examples import examples

UNITS = 6
WHO = threading.local()


class KilledError(BaseException):
    """Stands for SIGKILL: nothing is tidied up after it."""


class Worker:
    """``work`` in a thread of its own that runs only between two steps: one worker moves at a time.

    It stops where ``work`` looks for what is left, and inside a unit.
    """

    def __init__(self, folder, share, pid, alive):
        self.folder, self.share, self.pid, self.alive = folder, share, pid, alive
        self.at, self.dead = "start", False
        self._go, self._stopped = Queue(), Queue()
        alive.add(pid)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def step(self, command="go"):
        """Let it run to where it stops next."""
        self._go.put(command)
        self.at = self._stopped.get(timeout=30)

    def _wait(self, where):
        self._stopped.put(where)
        return self._go.get(timeout=30)

    def _run(self):
        self._go.get(timeout=30)
        plan = WorkPlan(self.folder)
        WHO.pid = self.pid
        tidy = plan.mark_left
        plan.mark_left = lambda unit: None if self.dead else tidy(unit)  # the marker of a killed process stays behind
        with contextlib.suppress(KilledError, StoppedError):
            work(plan, self._do, share=self.share, progress=self)
        self.alive.discard(self.pid)
        self._stopped.put("ended")

    @contextlib.contextmanager
    def stage(self, description, total):
        yield lambda finished, remark=None: self._wait("looking")

    def _do(self, unit, plan):
        command = self._wait("unit")
        if command == "stop":
            raise StoppedError
        if command == "fail":
            raise ValueError("asked to")
        if command != "kill before":
            for name in unit.needs:
                assert plan.place.exists(f"results/{name}"), "what it needs is there"
            plan.place.create(f"results/{unit.name}", str(self.pid).encode())
        if command.startswith("kill"):
            self.dead = True
            raise KilledError
        return {}


class Plans(RuleBasedStateMachine):
    """One plan, its workers, and what they published."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.workers, self.alive, self.published, self.done = [], set(), {}, set()
        self.pids = iter(range(1, 10_000))
        # processes that are threads here, a look without a pause, and no waiting for a disk that nobody switches off
        here = {"host": socket.gethostname()}
        self.patch = pytest.MonkeyPatch()
        for module in (plans, working):
            self.patch.setattr(module, "worker_name", lambda: {**here, "pid": getattr(WHO, "pid", 0)})
        self.patch.setattr(plans, "_alive", self.alive.__contains__)
        self.patch.setattr(working, "POLL", 0)
        self.patch.setattr(os, "fsync", lambda handle: None)

    @initialize(edges=st.lists(st.tuples(st.integers(0, UNITS - 1), st.integers(0, UNITS - 1)), max_size=8))
    def write(self, edges):
        units = []
        for number in range(UNITS):
            needs = sorted({source for source, target in edges if target == number and source < number})
            units.append(Unit(kind="x", spec={"number": number}, needs=tuple(units[each].name for each in needs)))
        self.plan = WorkPlan.create(self.folder.name, units, output=self.folder.name)

    def of(self, *places):
        return [worker for worker in self.workers if worker.at in places]

    @precondition(lambda self: len(self.of("start", "looking", "unit")) < 3)
    @rule(number=st.integers(0, 3))
    def start(self, number):
        self.workers.append(Worker(self.folder.name, Share(number=number, count=4), next(self.pids), self.alive))

    @precondition(lambda self: self.of("start", "looking"))
    @rule(data=st.data())
    def look(self, data):
        data.draw(st.sampled_from(self.of("start", "looking"))).step()

    @precondition(lambda self: self.of("unit"))
    @rule(data=st.data(), how=st.sampled_from(["go", "go", "fail", "stop", "kill before", "kill after"]))
    def act(self, data, how):
        data.draw(st.sampled_from(self.of("unit"))).step(how)

    @rule()
    def forgive(self):
        self.plan.forgive()

    @invariant()
    def nothing_is_lost_or_changed(self):
        if not hasattr(self, "plan"):
            return
        status = self.plan.status()
        every = [*status.done, *status.failed, *status.left, *(set(status.running) - set(status.failed))]
        assert sorted(every) == sorted(unit.name for unit in self.plan.units)
        assert self.done <= set(status.done), "what is done stays done"
        assert len(status.running) <= len(self.alive), "the marker of a dead process does not count"
        self.done = set(status.done)
        for path in Path(self.folder.name, "results").glob("*"):
            assert self.published.setdefault(path.name, path.read_bytes()) == path.read_bytes(), "the first writer wins"
        assert self.done <= set(self.published)

    def teardown(self):
        try:
            if hasattr(self, "plan"):
                self.finish()
        finally:
            for worker in self.of("unit"):
                worker.step("kill before")
            self.patch.undo()
            self.folder.cleanup()

    def finish(self):
        """Whatever happened, those who are left and one more end the work."""
        self.plan.forgive()
        self.workers.append(Worker(self.folder.name, Share(), next(self.pids), self.alive))
        for _ in range(100 * UNITS):
            for worker in self.of("start", "looking", "unit"):
                worker.step()
        assert not self.alive and self.plan.status().finished
        self.nothing_is_lost_or_changed()


@pytest.mark.slow
def test_any_order_of_workers_failures_and_kills_ends_with_every_unit_done():
    run_state_machine_as_test(Plans, settings=settings(examples(100), stateful_step_count=25))
