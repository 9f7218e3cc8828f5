"""LiveBoard: the pages of the board as it is now, replaced whole when it changes."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from oodscope.base.errors import OodscopeError
from oodscope.serve.building import BUILD_SECONDS, build, state
from oodscope.serve.snapshot import Snapshot
from oodscope.serve.worker import Worker

_LOG = logging.getLogger("oodscope.serve")


class LiveBoard:
    """Readers take ``snapshot``, which is one object: nobody sees a page of one state beside a page of another.

    Building happens in a process of its own, so readers do not wait for it. If it fails, the old pages stay and
    ``trouble`` says why.
    """

    def __init__(self, entries: Path) -> None:
        self.entries = entries
        self.snapshot = Snapshot.of({})
        self.trouble = ""
        self._state: object = None
        self._worker = Worker()
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """Build if the folder has changed; at the end the pages are of a state not older than the call."""
        async with self._lock:
            now = await asyncio.to_thread(state, self.entries)
            if now == self._state:
                return
            try:
                contents = await asyncio.to_thread(self._worker.call, build, self.entries, seconds=BUILD_SECONDS)
            except OodscopeError as error:
                self.trouble = f"the pages are of an older state: {error}"
                _LOG.error("%s", self.trouble)
            else:
                self.snapshot, self.trouble = await asyncio.to_thread(Snapshot.of, contents), ""
            # also after a failure: the same state would fail again every second
            self._state = now

    async def admit(self, newcomer: Path, keep: Callable[[], None]) -> None:
        """Build the board with a newcomer, then keep it, then show it; a newcomer that cannot be built is not kept."""
        async with self._lock:
            seconds = BUILD_SECONDS
            contents = await asyncio.to_thread(self._worker.call, build, self.entries, newcomer, seconds=seconds)
            snapshot = await asyncio.to_thread(Snapshot.of, contents)
            await asyncio.to_thread(keep)
            self.snapshot, self.trouble = snapshot, ""
            self._state = await asyncio.to_thread(state, self.entries)

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
        self._worker.close()
