"""Work done ahead of the one who needs it: by several threads, in order, and never too far."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

MOST_THREADS = 16


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """One per core that this process may use: decoding and resizing release the interpreter's lock."""
    return min(MOST_THREADS, cores())


def ahead(
    items: Iterable[T], work: Callable[[T], U], *, depth: int = 1, workers: int | None = None
) -> Generator[U, None, None]:
    """``work(item)`` for every item, in the order of the items, computed while the caller is busy.

    The results do not depend on the number of threads. At most ``depth`` finished results wait, beside those
    being worked on, so memory does not grow with the number of items. An error is raised where its result
    would have come.

    Parameters
    ----------
    items : taken one by one, not far ahead.
    work : called in a thread.
    depth : how many results may wait for the caller.
    workers : threads; by default ``threads()``.
    """
    workers = workers or threads()
    pool = ThreadPoolExecutor(workers)
    pending: deque[Future[U]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) >= depth + workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        # a caller that stops early must not wait for what nobody wants any more
        pool.shutdown(wait=False, cancel_futures=True)
