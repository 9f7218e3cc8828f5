"""Submissions: entries that are sent over the network, kept whole or not at all."""

import asyncio
import errno
import os
import secrets
import shutil
import tempfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from filelock import FileLock, Timeout
from starlette.requests import Request

from oodscope.base.errors import OodscopeError
from oodscope.base.files import storage_errors
from oodscope.leaderboard.records.keeping import RECEIVED, Stamp, entry_folders, read_stamp, write_stamp
from oodscope.serve.answers import RefusedError
from oodscope.serve.audit import Audit, DailyQuota, seconds_of
from oodscope.serve.checking import check
from oodscope.serve.receiving import Limits, receive
from oodscope.serve.submitters import Submitters
from oodscope.serve.worker import Worker, WorkerError

Admit = Callable[[Path, Callable[[], None]], Awaitable[None]]
"""Builds the board with a newcomer, and calls the function that keeps it."""

_TICKETS = 1000


@dataclass
class Ticket:
    """How far a submission is; whoever knows its name may ask.

    Parameters
    ----------
    stage : ``receiving``, ``examining``, ``building``, ``accepted`` or ``refused``.
    reason : of a refusal.
    """

    name: str
    submitter: str
    client: str
    stage: str = "receiving"
    entry: str = ""
    reason: str = ""
    started: float = field(default_factory=monotonic)

    def described(self) -> dict[str, Any]:
        """For whoever asks."""
        state = {"stage": self.stage, "entry": self.entry, "reason": self.reason}
        return {"submission": self.name, **state, "seconds": round(monotonic() - self.started, 1)}


class Submissions:
    """From a request to the folder of an entry.

    An upload is received into a hidden folder beside the entries, unpacked and verified there by a process of its own,
    built into a copy of the board, and then takes its place by one rename, files flushed first. So a kill at any moment
    leaves the entry whole, or not there; what a killed server left in the hidden folder is removed by the next one.

    Parameters
    ----------
    entries : the folder of all entries.
    submitters : whose tokens a request may bring.
    """

    def __init__(self, entries: Path, submitters: Submitters, limits: Limits | None = None) -> None:
        self.entries = entries
        self.submitters = submitters
        self.limits = limits or Limits()
        self.audit = Audit(entries)
        self._worker = Worker(memory=self.limits.memory, file=self.limits.unpacked)
        self._incoming = entries / ".incoming"
        with storage_errors(entries):
            self._incoming.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self._incoming / "lock")
        self._receiving = 0
        self._begun: Counter[str] = Counter()
        self._turn: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._checking = asyncio.Lock()
        self._quota = DailyQuota(self.limits.per_day)
        self._tickets: OrderedDict[str, Ticket] = OrderedDict()
        self._in_progress: set[str] = set()

    def open(self) -> None:
        """Take the folder for this server, and clear what another one left."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise OodscopeError(f"{self.entries}: another server accepts submissions into this folder") from error
        for stale in self._incoming.glob("upload-*"):
            shutil.rmtree(stale, ignore_errors=True)
        self._remember()

    def _remember(self) -> None:
        """What servers before this one accepted, for the quotas.

        An entry whose server was killed before it wrote the line of its acceptance gets the line now.
        """
        accepted = list(self.audit.accepted())
        known = {entry for entry, _, _ in accepted}
        for folder in entry_folders(self.entries):
            if folder.name in known:
                continue
            try:
                stamp = read_stamp(self.entries, folder.name)
                if stamp is not None:
                    accepted.append((stamp.entry, stamp.submitter, seconds_of(stamp.received)))
                    reason = "the server ended before it could answer"
                    self.audit.write(stamp.submitter, "", 201, stamp.entry, 0.0, reason, when=stamp.received)
            except (OodscopeError, ValueError):
                continue  # a stamp that cannot be read is named by the pages, with its remedy
        for _, submitter, when in sorted(accepted, key=lambda each: each[2]):
            self._quota.count(submitter, when)

    def close(self) -> None:
        self._worker.close()
        self._lock.release()

    def ticket(self, name: str) -> Ticket | None:
        """A submission by its name."""
        return self._tickets.get(name)

    async def receive(self, request: Request) -> tuple[Ticket, Path]:
        """The bytes of a submission in a folder; who sends is known before a byte of the body is read."""
        client = request.client.host if request.client is not None else ""
        submitter = self.submitters.who(request.headers.get("authorization", ""))
        ticket = Ticket(secrets.token_hex(16), submitter or "", client)
        try:
            if submitter is None:
                reason = "a submission needs a token: Authorization: Bearer ..."
                raise RefusedError(401, reason, {"www-authenticate": "Bearer"})
            self._check_quotas(submitter)
            self._receiving += 1
            self._begun[submitter] += 1
            folder = None
            try:
                folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="upload-", dir=self._incoming))
                (folder / "received").mkdir()
                await receive(request, folder / "received", self.limits)
            except BaseException:
                self._begun[submitter] -= 1
                if folder is not None:
                    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                raise
            finally:
                self._receiving -= 1
        except RefusedError as error:
            self._ended(ticket, error.status, error.line)
            raise
        self._tickets[ticket.name] = ticket
        while len(self._tickets) > _TICKETS:
            self._tickets.popitem(last=False)
        return ticket, folder

    async def finish(self, ticket: Ticket, folder: Path, admit: Admit) -> str:
        """Examine what was received and keep it; the id of the entry, or a ``RefusedError``."""
        try:
            entry = await self._finish(ticket, folder, admit)
        except RefusedError as error:
            ticket.stage, ticket.reason = "refused", error.line
            self._ended(ticket, error.status, error.line)
            raise
        except BaseException as error:
            ticket.stage, ticket.reason = "refused", "the server failed at this; its log says how"
            self._ended(ticket, 500, repr(error))
            raise
        finally:
            self._begun[ticket.submitter] -= 1
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        ticket.stage = "accepted"
        self._quota.count(ticket.submitter)
        self._ended(ticket, 201, "")
        return entry

    def _ended(self, ticket: Ticket, status: int, reason: str) -> None:
        seconds = monotonic() - ticket.started
        self.audit.write(ticket.submitter, ticket.client, status, ticket.entry, seconds, reason)

    def _check_quotas(self, submitter: str) -> None:
        if self._receiving >= self.limits.at_once:
            raise RefusedError(503, "other submissions are being received; try again later", {"retry-after": "30"})
        if self._begun[submitter] >= self.limits.each:
            reason = f"{self.limits.each} submissions of yours are being received or examined; wait for them"
            raise RefusedError(429, reason, {"retry-after": "30"})
        if self._quota.full(submitter):
            reason = f"{self.limits.per_day} entries of yours were accepted within 24 hours; try again later"
            raise RefusedError(429, reason, {"retry-after": "3600"})
        if len(entry_folders(self.entries)) >= self.limits.entries:
            raise RefusedError(507, f"the board has {self.limits.entries} entries, and takes no more")

    async def _finish(self, ticket: Ticket, folder: Path, admit: Admit) -> str:
        ready = folder / "ready"
        ready.mkdir()
        ticket.stage = "examining"
        try:
            # one of each submitter at a time, so that whoever sends many that take long is waited for once; and one
            # thread in all, because the others of the server have readers to answer
            async with self._turn[ticket.submitter], self._checking:
                ticket.entry = entry = await asyncio.to_thread(self._check, folder / "received", ready)
            if entry in self._in_progress or (self.entries / entry).exists():
                raise RefusedError(409, f"there is an entry {entry!r}; entries are never overwritten")
            self._in_progress.add(entry)
            try:
                await self._admit(ticket, ready / entry, admit)
            finally:
                self._in_progress.discard(entry)
        except WorkerError as error:
            raise RefusedError(422, f"the entry could not be checked: {error}") from error
        except OodscopeError as error:
            raise RefusedError(422, str(error).replace(f"{folder}/", "")) from error
        return entry

    async def _admit(self, ticket: Ticket, ready: Path, admit: Admit) -> None:
        """Stamp the entry, then build the board with it, then keep it; a stamp without its entry does not stay."""
        ticket.stage = "building"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        stamp = Stamp(entry=ready.name, received=now, submitter=ticket.submitter)
        await asyncio.to_thread(write_stamp, self.entries, stamp)
        place = self.entries / ready.name
        try:
            await admit(ready, partial(keep, ready, place))
        except Exception:
            if not place.exists():
                with suppress(OSError):
                    (self.entries / RECEIVED / f"{ready.name}.json").unlink()
            raise

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
    """Let a file, or the names in a folder, reach the disk; Windows flushes no folder and no handle that only reads."""
    folder = path.is_dir()
    try:
        handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    except PermissionError:
        if folder:
            return
        raise
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
