"""WatchedStore: what pages show of a result store, asked for at most once a second."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from time import monotonic, time
from typing import Any, Generic, TypeVar

from oodscope.base.errors import StorageError
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord
from oodscope.results.store.store import ResultStore, Running
from oodscope.serve.answers import RefusedError

T = TypeVar("T")

_FRESH_SECONDS = 1.0


class WatchedStore:
    """A store whose readers may be many: all that ask within a second share one answer.

    A store that is not there yet has no runs, because the first evaluation makes it; one that cannot be read is a
    ``RefusedError`` with status 503, and is asked again.
    """

    def __init__(self, store: ResultStore) -> None:
        self.store = store
        self._records: tuple[int, dict[str, RunRecord]] = (0, {})
        self._runs = _Shared(self._read_runs)
        self._running = _Shared(self._read_running)

    async def runs(self) -> dict[str, RunRecord]:
        """Every run by its id, newest first."""
        return await self._runs.get()

    async def running(self) -> list[dict[str, Any]]:
        """What runs now, with its share done and whether it is stale, as JSON values."""
        now = time()
        return [_told(each, now) for each in await self._running.get()]

    async def run(self, run: str) -> tuple[RunRecord, Measurements]:
        """One run with its numbers; a ``RefusedError`` with status 404 if there is none."""
        record = (await self.runs()).get(run)
        if record is None:
            raise RefusedError(404, "no such run")
        return record, await asyncio.to_thread(_asked, lambda: self.store.measurements(run=run))

    async def report(self, run: str) -> bytes | None:
        """The page that was written with a run, if its folder is known and holds one."""
        return await asyncio.to_thread(_asked, lambda: self._read_report(run))

    def _read_report(self, run: str) -> bytes | None:
        folder = self.store.folder(run)
        path = None if folder is None else folder / "report.html"
        return path.read_bytes() if path is not None and path.is_file() else None

    def _read_runs(self) -> dict[str, RunRecord]:
        if not self.store.made():
            return {}
        count = self.store.count()
        if count != self._records[0]:
            records = self.store.runs()
            self._records = len(records), {record.id: record for record in reversed(records)}
        return self._records[1]

    def _read_running(self) -> list[Running]:
        return self.store.running() if self.store.made() else []


class _Shared(Generic[T]):
    """One answer for all that ask within a second, however many they are."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._lock = asyncio.Lock()
        self._known: tuple[float, T] | None = None

    async def get(self) -> T:
        async with self._lock:
            if self._known is None or monotonic() - self._known[0] > _FRESH_SECONDS:
                self._known = monotonic(), await asyncio.to_thread(_asked, self._read)
            return self._known[1]


def _asked(read: Callable[[], T]) -> T:
    try:
        return read()
    except StorageError as error:
        raise RefusedError(503, str(error), {"retry-after": "5"}) from error


def _told(running: Running, now: float) -> dict[str, Any]:
    share = min(1.0, running.done / running.total) if running.total > 0 else 0.0
    return asdict(running) | {
        "share": share,
        "stale": running.stale(now),
        "seconds": max(0.0, running.updated - running.started),
    }
