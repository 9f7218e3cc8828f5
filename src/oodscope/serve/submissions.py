"""Submissions: entries that are handed in over the network, kept whole or not at all."""

import asyncio
import errno
import os
import shutil
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout
from starlette.requests import Request

from oodscope.base.errors import OodscopeError
from oodscope.base.files import storage_errors
from oodscope.serve.answers import RefusedError
from oodscope.serve.checking import check
from oodscope.serve.receiving import Limits, receive
from oodscope.serve.token import Token
from oodscope.serve.worker import Worker, WorkerError


class Submissions:
    """The road of an entry from a request to its folder.

    An upload is received into a hidden folder beside the entries, unpacked and verified there by a process of its own,
    and then takes its place by one rename, files flushed first. So a kill at any moment leaves the entry whole, or not
    there; what a killed server left in the hidden folder is removed by the next one.

    Parameters
    ----------
    entries : the folder of all entries.
    token : what a request must bring.
    """

    def __init__(self, entries: Path, token: Token, limits: Limits | None = None) -> None:
        self.entries = entries
        self.token = token
        self.limits = limits or Limits()
        self._worker = Worker(memory=self.limits.memory, file=self.limits.unpacked)
        self._incoming = entries / ".incoming"
        with storage_errors(entries):
            self._incoming.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self._incoming / "lock")
        self._busy = 0

    def open(self) -> None:
        """Take the folder; two servers that accept into one would remove each other's uploads."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise OodscopeError(f"{self.entries}: another server accepts submissions into this folder") from error
        for stale in self._incoming.glob("upload-*"):
            shutil.rmtree(stale, ignore_errors=True)

    def close(self) -> None:
        self._worker.close()
        self._lock.release()

    async def accept(self, request: Request) -> str:
        """The id of the entry that the request brought, kept now; a ``RefusedError`` in every other case."""
        # before a byte of the body is read
        if not self.token.allows(request.headers.get("authorization", "")):
            raise RefusedError(
                401, "a submission needs the token: Authorization: Bearer ...", {"www-authenticate": "Bearer"}
            )
        if self._busy >= self.limits.at_once:
            raise RefusedError(503, "other submissions are being received; try again later", {"retry-after": "30"})
        self._busy += 1
        try:
            folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="upload-", dir=self._incoming))
            try:
                return await self._accept(request, folder)
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        finally:
            self._busy -= 1

    async def _accept(self, request: Request, folder: Path) -> str:
        upload, ready = folder / "received", folder / "ready"
        upload.mkdir()
        ready.mkdir()
        await receive(request, upload, self.limits)
        try:
            entry = await asyncio.to_thread(self._check, upload, ready)
        except WorkerError as error:
            raise RefusedError(422, f"the entry could not be checked: {error}") from error
        except OodscopeError as error:
            raise RefusedError(422, str(error).replace(f"{folder}/", "")) from error
        await asyncio.to_thread(keep, ready / entry, self.entries / entry)
        return entry

    def _check(self, upload: Path, ready: Path) -> str:
        limits = self.limits
        return self._worker.call(check, upload, ready, self.entries, limits.unpacked, seconds=limits.check_seconds)


def keep(folder: Path, place: Path) -> None:
    """Move a finished folder to its place, whole; a place that is taken is refused."""
    for path in sorted(folder.iterdir()):
        _flush(path)
    _flush(folder)
    try:
        # one system call: readers see no folder, or all of it
        folder.rename(place)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise RefusedError(409, f"there is an entry {place.name!r}; entries are never overwritten") from error
    _flush(place.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
