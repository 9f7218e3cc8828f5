"""Worker processes: in order, errors as errors, and nothing left behind however they end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oodscope.base.errors import DataError, OodscopeError
from oodscope.execution.worker import UnknownHereError
from oodscope.execution.workers import AHEAD, WorkerDiedError, Workers, session_workers, worker_session
from tests.execution import calls

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workers():
    made = Workers(2, 2**20)
    yield made
    made.close()


def test_answers_come_back_in_the_order_of_the_calls(workers):
    futures = [workers.submit(calls.square, number) for number in range(50)]
    assert [future.result(timeout=60) for future in futures] == [number**2 for number in range(50)]
    deadline = time.monotonic() + 60  # one of the two may have answered all calls while the other was still starting
    while not workers.ready and time.monotonic() < deadline:
        time.sleep(0.02)
    assert workers.ready
    assert workers.start_seconds > 0


def test_an_idle_process_within_the_limit_takes_a_call(workers):
    """One is woken for a call; another that may take none must not be the one."""
    for limit in (1, 2, 1, 2):
        workers.limit = limit
        assert [workers.submit(calls.square, number).result(timeout=60) for number in range(20)][-1] == 361


def test_memory_is_shared(workers):
    start = workers.allocate(5000)
    workers.submit(calls.write, start, b"seen here").result(timeout=60)
    assert workers.memory[start : start + 9] == b"seen here"
    workers.release(start, 5000)


def test_memory_is_taken_and_given_back(workers):
    starts = [workers.allocate(300_000) for _ in range(4)]
    assert None not in starts[:3]
    assert starts[3] is None
    for start in starts[:3]:
        workers.release(start, 300_000)
    whole = workers.allocate(2**20)
    assert whole == 0
    workers.release(whole, 2**20)


def test_an_error_keeps_its_kind_and_words(workers):
    with pytest.raises(DataError, match="^no such thing: 7$"):
        workers.submit(calls.fail, 7).result(timeout=60)
    with pytest.raises(OodscopeError, match="LocalError: cannot travel"):
        workers.submit(calls.fail_unsendably).result(timeout=60)


def test_what_only_the_caller_knows_is_named(workers):
    made = type("Own", (), {})
    made.__module__, made.__qualname__ = "tests.execution.calls", "Own"
    calls.Own = made
    try:
        with pytest.raises(UnknownHereError):
            workers.submit(calls.square, made()).result(timeout=60)
    finally:
        del calls.Own


def test_a_killed_worker_fails_its_calls_and_no_others():
    workers = Workers(2, 2**16)
    try:
        first = workers.submit(calls.identity).result(timeout=60)
        slow = [workers.submit(calls.sleep, 0.3) for _ in range(6)]
        time.sleep(0.1)
        os.kill(first, signal.SIGKILL)
        outcomes = [future.exception(timeout=60) for future in slow]
        lost = [outcome for outcome in outcomes if outcome is not None]
        assert 1 <= len(lost) <= AHEAD
        assert all(isinstance(outcome, WorkerDiedError) for outcome in lost)
        assert "OODSCOPE_WORKERS=0" in str(lost[0])
        assert not workers.ready
    finally:
        workers.close()


def test_processes_end_with_the_session():
    with worker_session():
        with worker_session():
            pool = session_workers(start=True)
            found = {pool.submit(calls.identity).result(timeout=60) for _ in range(8)}
        assert session_workers(start=False) is pool
    assert session_workers(start=False) is None
    assert not any(_alive(process) for process in found)


def test_without_a_session_or_with_none_wanted_there_are_no_processes(monkeypatch):
    assert session_workers(start=True) is None
    monkeypatch.setenv("OODSCOPE_WORKERS", "0")
    with worker_session():
        assert session_workers(start=True) is None


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_nothing_survives_the_caller(end, tmp_path):
    """However the caller ends, its processes and their memory go with it; Ctrl-C reaches all of them at once."""
    program = (
        "from oodscope.execution.workers import *; from tests.execution import calls; import time, os\n"
        "with worker_session():\n"
        "    pool = session_workers(start=True)\n"
        "    found = {pool.submit(calls.identity).result() for _ in range(8)}\n"
        "    print(*found, flush=True)\n"
        "    waiting = [pool.submit(calls.sleep, 0.2) for _ in range(1000)]\n"
        "    time.sleep(60)\n"
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    found = [int(each) for each in caller.stdout.readline().split()]
    assert found
    os.killpg(caller.pid, end) if end == signal.SIGINT else caller.kill()
    _, said = caller.communicate(timeout=60)
    if end == signal.SIGINT:
        assert said.strip().endswith("KeyboardInterrupt")
        assert said.count("Traceback") == 1
    deadline = time.monotonic() + 20
    while any(map(_alive, found)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_alive, found))


def _alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
