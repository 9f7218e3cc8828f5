"""``work``: walk the units of a plan, skip what is done, do the rest. Every launcher starts this."""

import signal
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from oodscope.base.errors import OodscopeError
from oodscope.execution.plan import WorkPlan, worker_name
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.units import Share, Unit

Do = Callable[[Unit, WorkPlan], dict[str, Any]]
"""Does a unit, publishes its result, and says what the record should hold beside who and how long."""

POLL = 0.05
"""Seconds between two looks at what others have finished."""

PATIENCE = 60.0
"""Seconds that a unit of another machine may take before it is done here too: it may have died."""


class StoppedError(SystemExit):
    """Told to end (SIGTERM), as preemption does first; what is published stays, and the next call goes on.

    Not an ``Exception``: nothing that forgives a failing detector may take it for one. Its process ends with the status
    of one that SIGTERM ended, by which a queue's script knows that the task is to be run again.
    """

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


@dataclass
class Worked:
    """What one worker did: names of the units that it finished, and of those that failed in its hands, with reasons."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    blocked: list[str] = field(default_factory=list)
    seconds: float = 0.0


def work(
    plan: WorkPlan,
    do: Do,
    *,
    share: Share | None = None,
    kinds: Collection[str] = (),
    progress: Progress = SILENT,
) -> Worked:
    """Do the units of a plan until none is left that can be done.

    The units of the own share come first, then those of others that nobody is seen to work on: a worker never waits
    while there is work, and an array of workers of which only some are started ends all the same. Where everything
    that is left is in others' hands, it waits for them, and after ``PATIENCE`` seconds (twice the estimate, where there
    is a longer one) does what they have not finished. A unit that fails is recorded, and the others go on.

    Parameters
    ----------
    do : see ``Do``.
    share : the part that is walked first.
    kinds : of units to do; all unless given.
    """
    asked = [unit for unit in plan.units if not kinds or unit.kind in kinds]
    known = _Known(plan)
    left = _in_order(asked, share or Share())
    worked, begun = Worked(), time.monotonic()
    with progress.stage("work", len(asked)) as advance, _stopped_by_signal():
        while left:
            before = len(left)
            unit = _next(known, left)
            advance(before - len(left))
            if unit is not None:
                do_one(plan, unit, do, worked)
                left.remove(unit)
                advance(1)
            elif left and _all_hopeless(known, left):
                worked.blocked = [each.name for each in left]
                break
            elif left:
                time.sleep(POLL)
    worked.seconds = time.monotonic() - begun
    return worked


class _Known:
    """What one worker knows of a plan. What is done stays done, so that it is asked for once.

    Every question is a look at a file, and to an object store a request: with thousands of units it matters.
    """

    def __init__(self, plan: WorkPlan) -> None:
        self.plan, self._done = plan, set[str]()

    def is_done(self, name: str) -> bool:
        if name not in self._done and self.plan.is_done(name):
            self._done.add(name)
        return name in self._done

    def is_over(self, name: str) -> bool:
        return self.is_done(name) or self.plan.has_failed(name)

    def ready(self, unit: Unit) -> bool:
        return all(self.is_done(name) for name in unit.needs)


def _in_order(units: Sequence[Unit], share: Share) -> list[Unit]:
    own = [unit for position, unit in enumerate(units) if share.owns(position)]
    # others' units from the end, where their owners come last
    return own + [unit for position, unit in reversed(list(enumerate(units))) if not share.owns(position)]


def _next(known: _Known, left: list[Unit]) -> Unit | None:
    """The first unit that can be done and that nobody is at; what others have ended on the way there is taken out."""
    for unit in list(left):
        if known.is_over(unit.name):
            left.remove(unit)
        elif known.ready(unit) and _is_free(known.plan, unit):
            return unit
    return None


def _is_free(plan: WorkPlan, unit: Unit) -> bool:
    """Whether nobody is seen to work on it, or somebody elsewhere for so long that they may have died."""
    runner = plan.runner(unit.name)
    if runner is None:
        return True
    patience = max(PATIENCE, 2 * (unit.seconds or 0.0))
    return time.time() - float(runner.get("since", 0.0)) > patience and runner["host"] != worker_name()["host"]


def _all_hopeless(known: _Known, left: Sequence[Unit]) -> bool:
    """Whether each needs something that has failed, or that will be tried by nobody who is at work."""
    names = {unit.name for unit in left}

    def never(name: str) -> bool:
        if known.is_done(name):
            return False
        # asked again at the end: who was at it may have finished between the two looks
        return known.plan.has_failed(name) or (
            name not in names and known.plan.runner(name) is None and not known.is_done(name)
        )

    return all(any(never(name) for name in unit.needs) for unit in left)


def do_one(plan: WorkPlan, unit: Unit, do: Do, worked: Worked) -> None:
    """Do a unit and record that it is done, or why it failed."""
    plan.mark_running(unit)
    begun = time.monotonic()
    try:
        about = do(unit, plan)
        plan.mark_done(unit, {"seconds": time.monotonic() - begun, **about})
        worked.done.append(unit.name)
    except Exception as error:  # whatever a unit stumbles over must not cost the others
        reason = (str(error).splitlines() or ["no message"])[0]
        said = reason if isinstance(error, OodscopeError) else f"{type(error).__name__}: {reason}"
        plan.mark_failed(unit, said, traceback.format_exc())
        worked.failed[unit.name] = said
    finally:
        plan.mark_left(unit)


@contextmanager
def _stopped_by_signal() -> Iterator[None]:
    """SIGTERM ends the work at once: files are published whole or not at all, and trainings have checkpoints."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: object) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGTERM, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
