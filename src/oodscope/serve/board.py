"""LiveBoard: the pages of the board as it is now, replaced whole when it changes."""

import asyncio
import logging
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from oodscope.base.errors import DataError, OodscopeError
from oodscope.leaderboard.records.keeping import RECEIVED
from oodscope.serve.building import BUILD_SECONDS, Built, State, build, state
from oodscope.serve.snapshot import Snapshot
from oodscope.serve.worker import Worker

_LOG = logging.getLogger("oodscope.serve")


@dataclass(eq=False)
class _Newcomer:
    """An entry that waits to be on the board: its folder, what moves it to its place, and what became of it."""

    folder: Path
    keep: Callable[[], None]
    done: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, error: Exception | None = None) -> None:
        """Tell whoever waits, if somebody still does."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class LiveBoard:
    """Readers take ``snapshot``, which is one object: nobody sees a page of one state beside a page of another.

    Building happens in a process of its own, so readers do not wait for it. If it fails, the old pages stay and
    ``trouble`` says why. Entries that come while the board is built are built together afterwards: a burst of
    submissions costs two builds, however many they are.
    """

    def __init__(self, entries: Path) -> None:
        self.entries = entries
        self.snapshot = Snapshot.of({})
        self.trouble = ""
        self._state: object = None
        self._worker = Worker()
        self._lock = asyncio.Lock()
        self._waiting: list[_Newcomer] = []
        self._admitting: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Build if the folder has changed; at the end the pages are of a state not older than the call."""
        async with self._lock:
            await self._refresh()

    async def _refresh(self) -> None:
        now = await asyncio.to_thread(state, self.entries)
        if now == self._state:
            return
        try:
            built = await self._built()
        except OodscopeError as error:
            self.trouble = f"the pages are of an older state: {error}"
            _LOG.error("%s", self.trouble)
        else:
            self.snapshot, self.trouble = await asyncio.to_thread(Snapshot.of, built.contents), ""
        # also after a failure: the same state would fail again every second
        self._state = now

    async def _built(self, newcomers: Sequence[Path] = ()) -> Built:
        seconds = BUILD_SECONDS
        return await asyncio.to_thread(self._worker.call, build, self.entries, tuple(newcomers), seconds=seconds)

    async def admit(self, newcomer: Path, keep: Callable[[], None]) -> None:
        """Build the board with a newcomer, then keep it, then show it; a newcomer that cannot be built is not kept."""
        waiting = _Newcomer(newcomer, keep)
        self._waiting.append(waiting)
        if self._admitting is None or self._admitting.done():
            self._admitting = asyncio.create_task(self._admit_waiting())
        try:
            await waiting.done
        finally:
            with suppress(ValueError):
                self._waiting.remove(waiting)

    async def _admit_waiting(self) -> None:
        """All that wait, together, and again while others have come meanwhile."""
        while self._waiting:
            async with self._lock:
                together, self._waiting = self._waiting, []
                try:
                    await self._admit_together(together)
                except Exception as error:
                    for each in together:
                        each.end(error)

    async def _admit_together(self, newcomers: Sequence[_Newcomer]) -> None:
        before = await asyncio.to_thread(state, self.entries)
        try:
            built = await self._built([each.folder for each in newcomers])
        except OodscopeError as error:
            if len(newcomers) == 1:
                newcomers[0].end(error)
                return
            for each in newcomers:  # one of them took too long or brought the process down: only that one is refused
                await self._admit_together([each])
            return
        snapshot = await asyncio.to_thread(Snapshot.of, built.contents)
        kept: list[_Newcomer] = []
        as_built = True
        for each in newcomers:
            if each.folder.name in built.refused:
                each.end(DataError(built.refused[each.folder.name]))
                continue
            try:
                await asyncio.to_thread(each.keep)
                kept.append(each)
            except Exception as error:  # its place was taken meanwhile, or its sender has gone
                each.end(error)
                as_built = False
        names = {each.folder.name for each in kept}
        try:
            now = await asyncio.to_thread(state, self.entries)
            if as_built and _others(now, names) == _others(before, names):
                self.snapshot, self.trouble, self._state = snapshot, "", now
            else:  # the pages that were built are of no state that there ever was
                await self._refresh()
        finally:
            for each in kept:  # whatever becomes of the pages
                each.end()

    async def watch(self, seconds: float) -> None:
        """Look for changes for ever."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
            except OSError as error:
                self.trouble = f"{self.entries}: {error.strerror}"
                _LOG.error("%s", self.trouble)

    def close(self) -> None:
        if self._admitting is not None:
            self._admitting.cancel()
        self._worker.close()


def _others(state: State, newcomers: Set[str]) -> list[tuple[str, int, int]]:
    """What else there is on a board; a stamp says nothing before its entry is there, so stamps do not count."""
    return [each for each in state if each[0].partition("/")[0] not in {*newcomers, RECEIVED}]
