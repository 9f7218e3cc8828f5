"""Workers: processes that work for one run, with memory that they share with it."""

import contextlib
import json
import mmap
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing.connection import Connection
from threading import Condition, Lock, RLock, Thread
from time import perf_counter
from typing import Any

from oodscope.base.errors import OodscopeError
from oodscope.execution.lookahead import cores

MEMORY = 2**30
"""Bytes of address space that processes share; pages take memory only once they are written."""

AHEAD = 2
"""Calls that wait in a process, so that it never waits for the next."""

PRELOAD = ("oodscope.data.preprocess", "oodscope.data.images.files")
"""Imported once, before the processes are forked."""

# numerical libraries must not start threads of their own in each of many processes
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_PAGE = mmap.ALLOCATIONGRANULARITY


class WorkerDiedError(OodscopeError):
    """A worker process ended by itself."""


class Workers:
    """Processes that take calls ``function(memory, *arguments)`` and answer them.

    They start in the background (``ready`` says when), take calls in order, and hand back results through futures, an
    exception as the exception. The function must be importable by name. The shared memory has no name in any file
    system: it is gone when the last process is, whatever killed it.

    Parameters
    ----------
    count : how many processes.
    size : bytes of shared memory.
    """

    def __init__(self, count: int, size: int = MEMORY) -> None:
        self.count = self.limit = count
        self.size = size
        self.gain: float | None = None
        """How much faster than threads they decode, once somebody has measured it."""
        self.started = perf_counter()
        self.start_seconds: float | None = None
        self._calls: deque[tuple[bytes, Future[Any]]] = deque()
        # asked for by itself: Ctrl-C inside the condition's own way to take and give it would leave it taken for ever
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._closed = False
        self._ready = self._lost = 0
        self._free = [(0, size)]
        handle = _anonymous_memory(size)
        self.memory = mmap.mmap(handle, size)
        pairs = [socket.socketpair() for _ in range(count)]
        theirs = [their.fileno() for _, their in pairs]
        settings = json.dumps({"memory": handle, "size": size, "sockets": theirs, "preload": PRELOAD})
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; from oodscope.execution.worker import main; main({settings!r})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            pass_fds=(handle, *theirs),
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_ONE_THREAD},
        )
        os.close(handle)
        self._threads = []
        for number, (ours, their) in enumerate(pairs):
            their.close()
            thread = Thread(target=self._converse, args=(number, Connection(ours.detach())), daemon=True)
            thread.start()
            self._threads.append(thread)

    @property
    def ready(self) -> bool:
        """Whether every process has started and none was lost."""
        return self._ready == self.count and self._lost == 0

    @property
    def starting(self) -> bool:
        """Whether some process has not said yet that it is there."""
        return self._ready < self.count and self._lost == 0

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """``function(memory, *arguments)`` in some process; raises what pickling raises."""
        call: tuple[bytes, Future[Any]] = (pickle.dumps((function, arguments)), Future())
        with self._lock:
            if self._closed or self._lost == self.count:
                call[1].set_exception(_died(None))
            else:
                self._calls.append(call)
                # one idle process is enough; those beyond a limit would not take the call
                self._changed.notify(1 if self.limit == self.count else self.count)
        return call[1]

    def allocate(self, size: int) -> int | None:
        """Take ``size`` bytes of the shared memory: where they begin, or ``None`` if there are not so many."""
        size = -(-size // _PAGE) * _PAGE
        with self._lock:
            for place, (start, free) in enumerate(self._free):
                if free >= size:
                    self._free[place] = (start + size, free - size)
                    return start
        return None

    def release(self, start: int, size: int) -> None:
        """Give back what ``allocate`` took."""
        size = -(-size // _PAGE) * _PAGE
        with self._lock:
            spans = sorted([*self._free, (start, size)])
            self._free = []
            for begin, length in spans:
                if self._free and sum(self._free[-1]) == begin:
                    self._free[-1] = (self._free[-1][0], self._free[-1][1] + length)
                else:
                    self._free.append((begin, length))

    def close(self) -> None:
        """End all processes; calls that nobody has answered are cancelled."""
        with self._lock:
            self._closed = True
            while self._calls:
                self._calls.popleft()[1].cancel()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=5)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(BufferError):  # an array over it may live on; the memory goes with the array
            self.memory.close()

    def _converse(self, number: int, connection: "Connection[Any, Any]") -> None:
        """Hand calls to one process and take its answers, in order."""
        waiting: deque[Future[Any]] = deque()
        try:
            connection.recv_bytes()
            with self._lock:
                self._ready += 1
                if self._ready == self.count:
                    self.start_seconds = perf_counter() - self.started
            while True:
                while len(waiting) < AHEAD and (call := self._next(number, wait=not waiting)) is not None:
                    waiting.append(call[1])
                    connection.send_bytes(call[0])
                if not waiting:
                    return
                good, outcome = pickle.loads(connection.recv_bytes())  # from our own process
                answered = waiting.popleft()
                answered.set_result(outcome) if good else answered.set_exception(outcome)
        except (EOFError, OSError) as error:
            self._lose(waiting, error)
        finally:
            connection.close()

    def _next(self, number: int, *, wait: bool) -> tuple[bytes, "Future[Any]"] | None:
        with self._lock:
            while not self._closed:
                if self._calls and number < self.limit:
                    call = self._calls.popleft()
                    if call[1].set_running_or_notify_cancel():
                        return call
                    continue
                if not wait:
                    return None
                self._changed.wait()
        return None

    def _lose(self, waiting: deque["Future[Any]"], error: Exception) -> None:
        with self._lock:
            self._lost += 1
            orphans = list(waiting)
            if self._lost == self.count:
                orphans += [future for _, future in self._calls]
                self._calls.clear()
        for future in orphans:
            if not future.cancelled():
                future.set_exception(_died(error))


def _died(error: Exception | None) -> WorkerDiedError:
    failure = WorkerDiedError(
        "a worker process that reads images ended by itself (killed, or out of memory); run again: "
        "what was extracted is kept. With OODSCOPE_WORKERS=0 no processes are used"
    )
    failure.__cause__ = error
    return failure


def _anonymous_memory(size: int) -> int:
    """An inheritable descriptor of memory that lies in no folder, or of a file that no folder names any more."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("oodscope")
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    os.truncate(handle, size)
    return handle


_lock = Lock()
_users = 0
_workers: tuple[int, Workers] | None = None


@contextmanager
def worker_session() -> Iterator[None]:
    """Processes started inside the block live until the outermost block ends: one pool serves a whole run."""
    global _users, _workers
    with _lock:
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            ending, _workers = (_workers, None) if _users == 0 else (None, _workers)
        if ending is not None and ending[0] == os.getpid():
            ending[1].close()


def session_workers(*, start: bool) -> Workers | None:
    """The processes of the session, started if ``start``; ``None`` where there are none, or none can be.

    ``OODSCOPE_WORKERS`` says how many there may be; 0 for none. By default one per core.
    """
    global _workers
    with _lock:
        if _workers is not None and _workers[0] == os.getpid():
            return None if _workers[1]._lost else _workers[1]
        count = _wanted()
        if not start or _users == 0 or count == 0:
            return None
        try:
            _workers = (os.getpid(), Workers(count))
        except OSError:  # no processes, no memory, no descriptors left: threads do the work
            return None
        return _workers[1]


def _wanted() -> int:
    wanted = os.environ.get("OODSCOPE_WORKERS", "")
    if not hasattr(os, "fork") or not sys.executable:
        return 0
    return int(wanted) if wanted.isdigit() else cores()
