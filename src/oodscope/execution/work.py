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


class StoppedError(BaseException):
    """Told to end (SIGTERM), as preemption does first; what is published stays, and the next call goes on.

    Not an ``Exception``: nothing that forgives a failing detector may take it for one.
    """


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
    order = _in_order(asked, share or Share())
    worked, begun = Worked(), time.monotonic()
    with progress.stage("work", len(asked)) as advance, _stopped_by_signal():
        finished: set[str] = set()
        while left := _left(plan, order, finished, worked):
            advance(len(asked) - len(left) - len(finished))
            finished |= {unit.name for unit in asked} - {unit.name for unit in left}
            ready = [unit for unit in left if all(plan.is_done(name) for name in unit.needs)]
            if not ready and all(_hopeless(plan, unit, left) for unit in left):
                worked.blocked = [unit.name for unit in left]
                break
            unit = _next(plan, ready)
            if unit is None:
                time.sleep(POLL)
            else:
                do_one(plan, unit, do, worked)
        advance(len(asked) - len(finished) - len(worked.blocked))
    worked.seconds = time.monotonic() - begun
    return worked


def _in_order(units: Sequence[Unit], share: Share) -> list[Unit]:
    own = [unit for position, unit in enumerate(units) if share.owns(position)]
    # others' units from the end, where their owners come last
    return own + [unit for position, unit in reversed(list(enumerate(units))) if not share.owns(position)]


def _left(plan: WorkPlan, order: Sequence[Unit], finished: Collection[str], worked: Worked) -> list[Unit]:
    return [
        unit
        for unit in order
        if unit.name not in finished and unit.name not in worked.failed and not _over(plan, unit.name)
    ]


def _over(plan: WorkPlan, name: str) -> bool:
    return plan.is_done(name) or plan.has_failed(name)


def _hopeless(plan: WorkPlan, unit: Unit, left: Sequence[Unit]) -> bool:
    """Whether something that it needs has failed, or will be tried by nobody who is at work."""
    names = {each.name for each in left}
    missing = [name for name in unit.needs if not plan.is_done(name)]
    return any(
        plan.has_failed(name) or (name not in names and plan.runner(name) is None and not plan.is_done(name))
        for name in missing
    )


def _next(plan: WorkPlan, ready: Sequence[Unit]) -> Unit | None:
    for unit in ready:
        runner = plan.runner(unit.name)
        if runner is None:
            return unit
        patience = max(PATIENCE, 2 * (unit.seconds or 0.0))
        if time.time() - float(runner.get("since", 0.0)) > patience and runner["host"] != worker_name()["host"]:
            return unit
    return None


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
        raise StoppedError("told to stop; what is finished is kept, and the same command goes on")

    before = signal.signal(signal.SIGTERM, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
