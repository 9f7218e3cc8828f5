"""WorkPlan: a folder that says what is to be done, what is done, and what failed. There is no scheduler in it."""

import json
import os
import socket
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version as _version_of
from pathlib import Path
from typing import Any

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import OodscopeError, StorageError
from oodscope.base.hashing import fingerprint
from oodscope.base.place import Place, is_url, open_place
from oodscope.execution.units import Unit

PLAN, DONE, FAILED, RUNNING = "plan.json", "done", "failed", "running"
_FORMAT = 1


class Contents(StrictModel):
    """What ``plan.json`` holds.

    Parameters
    ----------
    job : the declaration that the units belong to, and that joins their results.
    folder : what paths of the declaration are relative to.
    output : where results go that are not addressed by content.
    records : the folder of what is done, failed and running, relative to the plan's; several plans may share one.
    """

    format: int = _FORMAT
    version: str
    job: dict[str, Any]
    where: str
    folder: str
    output: str
    records: str = "."
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class Status:
    """How far a plan has come.

    Parameters
    ----------
    done, failed, running, left : names of units; those that failed with the reason, those that run with who runs them.
    seconds : of work that the units that are left would take, as estimated; ``None`` where nothing is known.
    """

    total: int
    done: tuple[str, ...]
    failed: dict[str, str]
    running: dict[str, dict[str, Any]]
    left: tuple[str, ...]
    seconds: float | None

    @property
    def finished(self) -> bool:
        return len(self.done) == self.total


class WorkPlan:
    """Units in order, and a record for each that is finished, in a folder that all workers see.

    ``done/NAME.json`` says who did a unit, where and how long it took; ``failed/NAME.json`` holds one line and the
    traceback; ``running/`` tells who works on what and decides nothing. Done is what exists, never what is listed.

    Parameters
    ----------
    folder : of the plan, or its URL in an object store; only plans of one's own user are worked on, because a plan may
        name code (``python:``).
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = folder if isinstance(folder, str) and is_url(folder) else Path(folder)
        self.home = open_place(self.folder)

    @classmethod
    def create(
        cls,
        folder: Path | str,
        units: Sequence[Unit],
        *,
        output: Path | str,
        job: Mapping[str, Any] | None = None,
        where: str = "",
        base: Path = Path(),
        records: str = ".",
    ) -> "WorkPlan":
        """Write a plan; the same plan again changes nothing, another one in the same folder is refused.

        Parameters
        ----------
        job, where, base : the declaration that the units belong to, what messages begin with, and what its paths are
            relative to.
        output, records : see ``Contents``.
        """
        names = [unit.name for unit in units]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise OodscopeError(f"two units of the plan are the same: {twice}")
        for unit in units:
            if missing := [name for name in unit.needs if name not in names]:
                raise OodscopeError(f"unit {unit.name} needs {missing[0]}, which is not in the plan")
        contents = Contents(
            version=_version(),
            job=dict(job or {}),
            where=where,
            folder=str(base.absolute()),
            output=str(Path(output).absolute()),
            records=records,
            units=tuple(units),
        )
        plan = cls(folder)
        text = contents.model_dump_json(indent=1, exclude_defaults=True) + "\n"
        if not plan.home.create(PLAN, text.encode()) and plan.contents != contents:
            raise StorageError(f"{plan.folder} holds another plan; choose another folder")
        return plan

    @cached_property
    def contents(self) -> Contents:
        path = f"{self.folder}/{PLAN}"
        try:
            if isinstance(self.folder, Path):
                _check_owner(self.folder / PLAN)
            content = json.loads(self.home.read(PLAN))
        except FileNotFoundError as error:
            raise OodscopeError(f"{path}: no such plan; write one: oodscope plan JOB -o {self.folder}") from error
        except (ValueError, RecursionError) as error:
            raise OodscopeError(f"{path}: not a plan of work ({error})") from error
        except OSError as error:
            raise OodscopeError(f"{path}: cannot be read ({error.strerror or error})") from error
        contents = parse(Contents, content, path)
        if (contents.format, contents.version) != (_FORMAT, _version()):
            raise OodscopeError(f"{path}: made by oodscope {contents.version}, this is {_version()}; plan it again")
        return contents

    @cached_property
    def place(self) -> Place:
        """Where what is done, failed and running is recorded."""
        if self.contents.records == ".":
            return self.home
        return open_place(self.contents.records)

    def local_folder(self) -> Path:
        """The folder itself, for those who write scripts and logs into it."""
        if isinstance(self.folder, Path):
            return self.folder
        raise OodscopeError(f"{self.folder}: a launcher needs a folder for its logs; start 'oodscope work' by hand")

    @property
    def units(self) -> tuple[Unit, ...]:
        return self.contents.units

    @cached_property
    def key(self) -> str:
        """Of everything that is planned."""
        return fingerprint([unit.name for unit in self.units])[:16]

    def is_done(self, name: str) -> bool:
        return self.place.exists(f"{DONE}/{name}.json")

    def has_failed(self, name: str) -> bool:
        return self.place.exists(f"{FAILED}/{name}.json")

    def mark_done(self, unit: Unit, about: dict[str, Any]) -> bool:
        """Whether this was the first to finish it."""
        first = self.place.create(f"{DONE}/{unit.name}.json", _json({**worker_name(), **about}))
        self.place.remove(f"{FAILED}/{unit.name}.json")
        return first

    def mark_failed(self, unit: Unit, reason: str, trace: str) -> None:
        self.place.replace(f"{FAILED}/{unit.name}.json", _json({**worker_name(), "reason": reason, "trace": trace}))

    def mark_running(self, unit: Unit) -> None:
        self.place.replace(_running(unit.name), _json({**worker_name(), "since": time.time()}))

    def mark_left(self, unit: Unit) -> None:
        self.place.remove(_running(unit.name))

    def runner(self, name: str) -> dict[str, Any] | None:
        """Who works on a unit, as far as is known: a process of this machine that is no more does not count."""
        for marker in self.place.list(f"{RUNNING}/{name}"):
            found = self._read(marker)
            if "pid" not in found or "host" not in found:
                continue
            if found["host"] != socket.gethostname() or _alive(int(found["pid"])):
                return found
            self.place.remove(marker)
        return None

    def record(self, name: str) -> dict[str, Any]:
        """What is recorded of a finished unit."""
        return self._read(f"{DONE}/{name}.json")

    def failure(self, name: str) -> str:
        """Why a unit failed, in one line."""
        return str(self._read(f"{FAILED}/{name}.json").get("reason", "no reason is recorded"))

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(self.place.read(name))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def forget(self, name: str) -> None:
        """Count a unit as not done."""
        self.place.remove(f"{DONE}/{name}.json")

    def forgive(self) -> int:
        """Forget what failed, so that it is tried again; how many units that were."""
        failed = [unit.name for unit in self.units if self.has_failed(unit.name) and not self.is_done(unit.name)]
        for name in failed:
            self.place.remove(f"{FAILED}/{name}.json")
        return len(failed)

    def status(self) -> Status:
        """What is done, what failed, who runs what, and what is left."""
        names = {unit.name for unit in self.units if self.is_done(unit.name)}
        done = [unit for unit in self.units if unit.name in names]
        rest = [unit for unit in self.units if unit.name not in names]
        failed = {unit.name: self.failure(unit.name) for unit in rest if self.has_failed(unit.name)}
        running = {unit.name: who for unit in rest if (who := self.runner(unit.name)) is not None}
        left = [unit for unit in rest if unit.name not in failed and unit.name not in running]
        return Status(
            len(self.units),
            tuple(unit.name for unit in done),
            failed,
            running,
            tuple(unit.name for unit in left),
            self._expected(done, [unit for unit in rest if unit.name not in failed]),
        )

    def _expected(self, done: Sequence[Unit], rest: Sequence[Unit]) -> float | None:
        """Seconds of work that are left: by the estimates, corrected by what finished units of the kind took."""
        taken: dict[str, list[float]] = {}
        for unit in done:
            taken.setdefault(unit.kind, []).append(float(self.record(unit.name).get("seconds", 0.0)))
        seconds = [
            sum(taken[unit.kind]) / len(taken[unit.kind]) if unit.kind in taken else unit.seconds for unit in rest
        ]
        known = [each for each in seconds if each is not None]
        return sum(known) if len(known) == len(seconds) else None


def _running(name: str) -> str:
    who = worker_name()
    return f"{RUNNING}/{name}/{who['host']}-{who['pid']}.json"


def _check_owner(path: Path) -> None:
    """Refuse the plan of another user, or one that others may have changed: it may name code."""
    if not hasattr(os, "getuid"):  # Windows keeps rights elsewhere, and shows every file as writable by all
        return
    found = path.stat()
    if found.st_uid != os.getuid():
        raise OodscopeError(f"{path}: belongs to another user; a plan may name code, so only its owner runs it")
    if found.st_mode & stat.S_IWOTH:
        raise OodscopeError(f"{path}: anybody may write to it; take that right away (chmod o-w) to run it")


def _version() -> str:
    return _version_of("oodscope")


def worker_name() -> dict[str, Any]:
    """Host and process."""
    return {"host": socket.gethostname(), "pid": os.getpid()}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        # a process that has ended and whose parent has not asked yet answers to signals all the same
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return True


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()
