"""An evaluation tells the store how far it is, now and then; a store in trouble is never its own trouble."""

import os
import subprocess
import sys
from contextlib import contextmanager
from time import monotonic, sleep, time

import pytest

from oodscope.base.errors import StorageError
from oodscope.execution.progress import SILENT
from oodscope.results.store import reporting
from oodscope.results.store.reporting import reporting_to
from oodscope.results.store.store import ResultStore


class RecordingStore:
    """A store that remembers what was reported to it, or refuses it."""

    def __init__(self, refuse: bool = False) -> None:
        self.refuse = refuse
        self.lines, self.times, self.forgotten = [], [], []

    def report_progress(self, running) -> None:
        self.lines.append(running)
        self.times.append(monotonic())
        if self.refuse:
            raise StorageError("busy")

    def forget(self, id: str) -> None:
        self.forgotten.append(id)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(reporting, "_SECONDS", 0.05)


def until(condition, seconds: float = 10.0) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it never happened"
        sleep(0.01)


def test_the_store_hears_where_the_evaluation_is_and_that_it_has_ended(quick):
    store = RecordingStore()
    before = time()
    with reporting_to(store, "evaluate r18 on glyphs", SILENT) as progress:
        with progress.stage("extract", 10) as advance:
            advance(3)
            advance(4)
            until(lambda: store.lines and store.lines[-1].done == 7)
            line = store.lines[-1]
            assert (line.what, line.stage, line.done, line.total) == ("evaluate r18 on glyphs", "extract", 7, 10)
            assert line.process == os.getpid() and before <= line.started <= line.updated <= time()
            with progress.stage("inner", 5) as advance_inner:
                advance_inner(1)
                until(lambda: store.lines[-1].stage == "inner")
                assert (store.lines[-1].done, store.lines[-1].total) == (1, 5)
            until(lambda: store.lines[-1].stage == "extract" and store.lines[-1].done == 7)
        assert store.forgotten == []
    assert store.forgotten == [line.id] and len({each.id for each in store.lines}) == 1


@pytest.mark.slow
def test_it_is_reported_at_most_once_per_interval_however_often_it_advances(monkeypatch):
    monkeypatch.setattr(reporting, "_SECONDS", 0.2)
    store = RecordingStore()
    with reporting_to(store, "x", SILENT) as progress, progress.stage("many", 10**9) as advance:
        end = monotonic() + 1.0
        while monotonic() < end:
            advance(1)
            sleep(0.0005)
    assert 2 <= len(store.times) <= 5
    assert min(b - a for a, b in zip(store.times, store.times[1:])) > 0.15


def test_nothing_new_is_a_heartbeat_only(monkeypatch):
    monkeypatch.setattr(reporting, "_SECONDS", 0.02)
    monkeypatch.setattr(reporting, "_HEARTBEAT", 0.3)
    store = RecordingStore()
    with reporting_to(store, "x", SILENT):
        sleep(0.8)
    assert 2 <= len(store.lines) <= 3
    assert store.lines[-1].updated > store.lines[0].updated


def test_every_call_reaches_the_other_sink(quick):
    seen = []

    class Sink:
        @contextmanager
        def stage(self, description, total):
            seen.append((description, total))
            yield lambda finished, remark=None: seen.append((finished, remark and remark()))
            seen.append("end")

    calls = []
    with reporting_to(RecordingStore(), "x", Sink()) as progress, progress.stage("score", 3) as advance:
        advance(1)
        advance(2, lambda: calls.append(1) or "loss 3")
    assert seen == [("score", 3), (1, None), (2, "loss 3"), "end"]
    assert calls == [1], "what a remark reads may stop a device: nobody else may ask"


def test_what_ends_at_once_leaves_no_trace(tmp_path):
    with (
        reporting_to(ResultStore(tmp_path / "runs" / "results.db"), "x", SILENT) as progress,
        progress.stage("s", 1) as advance,
    ):
        advance(1)
    assert not (tmp_path / "runs").exists()


def test_a_store_that_refuses_is_no_error_of_the_evaluation(quick):
    store = RecordingStore(refuse=True)
    with reporting_to(store, "x", SILENT) as progress, progress.stage("s", 2) as advance:
        advance(1)
        until(lambda: len(store.lines) >= 2)
    assert store.forgotten == [], "it was never heard, so there is nothing to forget"


def test_an_error_of_the_evaluation_passes_and_the_line_goes(quick, tmp_path):
    store = ResultStore(tmp_path / "results.db", wait_seconds=1)
    with pytest.raises(RuntimeError, match="its own"):
        with reporting_to(store, "x", SILENT) as progress, progress.stage("s", 2):
            until(lambda: (tmp_path / "results.db").exists() and _running(store))
            raise RuntimeError("its own")
    assert store.running() == []


def test_a_locked_store_delays_nothing(quick, monkeypatch, tmp_path):
    monkeypatch.setattr(reporting, "_PATIENCE", 0.3)
    store = ResultStore(tmp_path / "results.db", wait_seconds=30)
    store.report_progress(reporting.Running(id="a", what="", host="", process=1, started=0, updated=time()))
    with store._engine.connect() as blocker:
        blocker.exec_driver_sql("BEGIN IMMEDIATE")
        started = monotonic()
        with reporting_to(store, "x", SILENT) as progress, progress.stage("s", 100) as advance:
            for _ in range(100):
                advance(1)
                sleep(0.002)
        assert monotonic() - started < 3


TELLS_FOR_EVER = """
import sys
from time import sleep
from oodscope.execution.progress import SILENT
from oodscope.results.store import reporting
from oodscope.results.store.store import ResultStore

reporting._SECONDS = 0.05
told = reporting.reporting_to(ResultStore(sys.argv[1]), "victim", SILENT)
with told as progress, progress.stage("s", 100) as advance:
    advance(40)
    while True:  # only a kill ends it, however slow the machine is
        sleep(60)
"""
"""A process of its own, not a fork: a lock that a thread of this one holds would never be free there."""


def test_the_line_of_a_killed_process_stays_and_is_stale_in_time(tmp_path):
    path = tmp_path / "results.db"
    process = subprocess.Popen([sys.executable, "-c", TELLS_FOR_EVER, str(path)])
    try:
        store = ResultStore(path)
        # the first line may be of the moment before the stage began
        until(lambda: path.exists() and [line.done for line in _running(store)] == [40], 120)
        (line,) = store.running()
        assert (line.process, line.done, line.total) == (process.pid, 40, 100) and not line.stale(time())
    finally:
        process.kill()
        process.wait(30)
    (line,) = store.running()
    assert line.stale(time() + reporting.STALE_SECONDS + 1)


def _running(store: ResultStore) -> list:
    try:
        return store.running()
    except StorageError:  # the file is there, its tables not yet
        return []
