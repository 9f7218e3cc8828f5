"""A progress sink that also reports to a result store how far an evaluation is."""

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import time

from oodscope.base.errors import OodscopeError
from oodscope.execution.progress import Advance, Progress
from oodscope.results.store.store import STALE_SECONDS, ResultStore, Running

_SECONDS = 1.0
_HEARTBEAT = STALE_SECONDS / 4
_PATIENCE = 2.0


@contextmanager
def reporting_to(store: ResultStore, what: str, progress: Progress) -> Iterator[Progress]:
    """A sink that hands every stage on to ``progress``, and at most once a second a line to the store.

    A thread of its own writes, so a busy, full or unreachable store costs the evaluation nothing and is never its
    error. What ends within a second leaves no trace; what ends later takes its line away. A process that is killed
    leaves its line behind, and nobody renews it: see ``Running.stale``.

    Parameters
    ----------
    store : reported to; it should not wait long for a lock.
    what : the evaluation in words.
    """
    reporter = _Reporter(store, what, progress)
    reporter.thread.start()
    try:
        yield reporter
    finally:
        reporter.ended.set()
        # a write that hangs is left to itself: the thread is a daemon
        reporter.thread.join(_PATIENCE)


class _Reporter:
    def __init__(self, store: ResultStore, what: str, progress: Progress) -> None:
        self.store = store
        self.what = what
        self.progress = progress
        self.id = secrets.token_hex(8)
        self.started = time()
        self.ended = Event()
        self.thread = Thread(target=self._report, daemon=True, name="oodscope-reporting")
        # one tuple, replaced whole: the thread never sees the stage of one moment with the count of another
        self._now: tuple[str, int, int] = ("", 0, 0)

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Advance]:
        outer, self._now = self._now, (description, 0, total)
        with self.progress.stage(description, total) as advance:
            done = 0

            def count(finished: int, remark: Callable[[], str] | None = None, /) -> None:
                nonlocal done
                done += finished
                self._now = (description, done, total)
                advance(finished, remark)

            try:
                yield count
            finally:
                self._now = outer if outer[0] else (description, done, total)

    def _report(self) -> None:
        reported: tuple[str, int, int] | None = None
        when = 0.0
        while not self.ended.wait(_SECONDS):
            now = self._now
            if now != reported or time() - when >= _HEARTBEAT:
                with suppress(OodscopeError, OSError):
                    self.store.report_progress(self._line(now))
                    reported, when = now, time()
        if reported is not None:
            with suppress(OodscopeError, OSError):
                self.store.forget(self.id)

    def _line(self, now: tuple[str, int, int]) -> Running:
        stage, done, total = now
        return Running(
            id=self.id,
            what=self.what,
            host=socket.gethostname(),
            process=os.getpid(),
            started=self.started,
            updated=time(),
            stage=stage,
            done=done,
            total=total,
        )
