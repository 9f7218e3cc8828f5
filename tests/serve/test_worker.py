"""A worker does what it is told within its bounds, and what breaks it breaks nothing else."""

import os
import time
from pathlib import Path

import pytest

from oodscope.base.errors import DataError, OodscopeError
from oodscope.serve.worker import Worker, WorkerError


def double(number: int) -> tuple[int, int]:
    return 2 * number, os.getpid()


def refuse() -> None:
    raise DataError("scores.parquet: \n 3 rows too many")


def break_down() -> None:
    raise ZeroDivisionError("by zero")


def eat() -> int:
    return len(bytearray(3 << 30))


def write(path: Path) -> None:
    path.write_bytes(b"x" * (2 << 20))


@pytest.fixture(scope="module")
def worker():
    worker = Worker(memory=2 << 30, file=1 << 20)
    yield worker
    worker.close()


def test_work_is_done_elsewhere_in_one_process(worker):
    first, process = worker.call(double, 4, seconds=60)
    assert first == 8 and process != os.getpid()
    assert worker.call(double, 5, seconds=60) == (10, process)


def test_what_a_person_can_mend_comes_back_as_one_line(worker):
    with pytest.raises(OodscopeError, match="scores.parquet: 3 rows too many") as caught:
        worker.call(refuse, seconds=60)
    assert not isinstance(caught.value, WorkerError) and "\n" not in str(caught.value)


def test_other_errors_are_the_workers(worker):
    with pytest.raises(WorkerError, match="ZeroDivisionError: by zero"):
        worker.call(break_down, seconds=60)


def test_memory_is_bounded(worker):
    with pytest.raises(WorkerError, match="memory"):
        worker.call(eat, seconds=60)
    assert worker.call(double, 1, seconds=60)[0] == 2


def test_files_are_bounded(worker, tmp_path):
    with pytest.raises(WorkerError, match="File too large"):
        worker.call(write, tmp_path / "big", seconds=60)
    assert (tmp_path / "big").stat().st_size <= 1 << 20


def test_who_hangs_is_replaced(worker):
    process = worker.call(double, 0, seconds=60)[1]
    started = time.monotonic()
    with pytest.raises(WorkerError, match="not done after 0 s"):
        worker.call(time.sleep, 60, seconds=0.2)
    assert time.monotonic() - started < 20
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert worker.call(double, 3, seconds=60)[0] == 6


def test_who_dies_is_replaced(worker):
    with pytest.raises(WorkerError, match="ended without an answer"):
        worker.call(os._exit, 3, seconds=60)
    assert worker.call(double, 3, seconds=60)[0] == 6
