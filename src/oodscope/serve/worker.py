"""Worker: a process for work on what others sent, bounded in time and memory."""

import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from oodscope.base.errors import OodscopeError

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

T = TypeVar("T")

_IMPORTED = ["oodscope.leaderboard.verify.verifying", "oodscope.serve.building", "oodscope.serve.checking"]
"""What workers of this package need; it takes seconds to import."""


class WorkerError(OodscopeError):
    """The work took too long, needed too much memory, or brought its process down."""


class Worker:
    """A process that does one piece of work at a time and is replaced if it hangs or dies.

    It is started with the first work and kept. What it raises for people is raised here again; anything else becomes a
    ``WorkerError``.

    Parameters
    ----------
    memory : most bytes of data that it may hold; no limit unless given.
    file : most bytes of one file that it may write; no limit unless given.
    """

    def __init__(self, *, memory: int | None = None, file: int | None = None) -> None:
        self._limits = {"RLIMIT_DATA": memory, "RLIMIT_FSIZE": file}
        self._lock = Lock()
        self._running: tuple[BaseProcess, Connection] | None = None

    def call(self, work: Callable[..., T], *args: Any, seconds: float) -> T:
        """What ``work`` returns there; ``work`` must be a function of a module."""
        with self._lock:
            _, pipe = self._started()
            try:
                pipe.send((work, args))
                if not pipe.poll(seconds):
                    raise WorkerError(f"not done after {seconds:.0f} s")
                kind, value = pipe.recv()
            except (EOFError, OSError) as error:
                self._end()
                raise WorkerError("the process that did it ended without an answer") from error
            except BaseException:
                self._end()
                raise
        if kind == "done":
            answer: T = value
            return answer
        raise OodscopeError(value) if kind == "refused" else WorkerError(value)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._end()

    def _started(self) -> tuple[BaseProcess, Connection]:
        if self._running is None or not self._running[0].is_alive():
            context = _context()
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, self._limits), daemon=True, name="oodscope-worker")
            process.start()
            theirs.close()
            self._running = process, ours
        return self._running

    def _end(self) -> None:
        if self._running is not None:
            process, pipe = self._running
            self._running = None
            process.kill()
            process.join(5)
            pipe.close()


def _context() -> "SpawnContext | ForkServerContext":
    """How processes start: forked from one that has imported what they need, so that a new one costs nothing."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context


def _work(pipe: Connection, limits: dict[str, int | None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    _bound(limits)
    while True:
        try:
            work, args = pipe.recv()
        except EOFError:
            return
        try:
            answer: tuple[str, Any] = ("done", work(*args))
        except OodscopeError as error:
            answer = ("refused", " ".join(str(error).split()))
        except MemoryError:
            answer = ("failed", "it needs more memory than it may have")
        except Exception as error:
            answer = ("failed", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        with suppress(BrokenPipeError):
            pipe.send(answer)


def _bound(limits: dict[str, int | None]) -> None:
    try:
        import resource
    except ImportError:  # where there is no such thing, time is the only bound
        return
    for name, most in limits.items():
        if most is not None and hasattr(resource, name):
            hard = resource.getrlimit(getattr(resource, name))[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(getattr(resource, name), (most, hard))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write then fails with an error that can be reported
