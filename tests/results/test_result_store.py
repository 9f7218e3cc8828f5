"""The store appends whole runs, from many processes, and says in one line what is wrong."""

import os
import signal
import sqlite3
import subprocess
import sys
from multiprocessing import get_context

import pytest
from sqlalchemy import event

from oodscope.base.errors import OodscopeError, StorageError
from oodscope.results import Measurements, Result, ResultStore
from tests.results.factory import make_record, make_result


def small(run: str, rows: int = 12) -> Result:
    few = make_result().to_dataframe().head(rows).assign(run=run)
    return Result(make_record(run), Measurements.from_dataframe(few), make_result().scores)


def test_runs_and_measurements_come_back_equal(tmp_path):
    store = ResultStore(tmp_path / "new folder" / "results.db")
    store.add(make_result())
    again = ResultStore(str(tmp_path / "new folder" / "results.db"))
    assert again.runs() == [make_result().record]
    assert again.measurements() == make_result().measurements


def test_filters_are_those_of_measurements(tmp_path):
    store = ResultStore(tmp_path / "results.db")
    store.add(make_result())
    every = make_result().measurements
    for equals in (
        {"metric": "auroc", "group": "near"},
        {"params": {"top": 10, "gamma": 0.1}},
        {"low": None},
        {"detector": "", "set": "pooled"},
    ):
        assert store.measurements(**equals) == every.filter(**equals)
        assert 0 < len(store.measurements(**equals)) < len(every)
    with pytest.raises(OodscopeError, match="Did you mean 'metric'"):
        store.measurements(metrik="auroc")


def test_runs_are_listed_oldest_first(tmp_path):
    store = ResultStore(tmp_path / "results.db")
    for run, day in (("a", "03"), ("b", "01"), ("c", "02")):
        result = small(run)
        record = make_record(run, created=f"2026-01-{day}T00:00:00+00:00")
        store.add(Result(record, result.measurements, result.scores))
    assert [record.id for record in store.runs()] == ["b", "c", "a"]


def test_a_run_is_never_overwritten(tmp_path):
    store = ResultStore(tmp_path / "results.db")
    store.add(small("one", rows=3))
    with pytest.raises(StorageError, match="run 'one' is there; results are appended, never overwritten"):
        store.add(small("one", rows=5))
    assert store.measurements() == small("one", rows=3).measurements


def test_an_error_in_the_middle_leaves_nothing(tmp_path):
    store = ResultStore(tmp_path / "results.db")
    store.add(small("before"))

    def fail(_connection, _cursor, statement, *_):
        if statement.startswith("INSERT INTO measurements"):
            raise RuntimeError("in the middle")

    event.listen(store._engine, "after_cursor_execute", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        store.add(small("half"))
    assert [record.id for record in store.runs()] == ["before"]
    assert store.measurements() == small("before").measurements


def kill_in_the_middle(path: str) -> None:
    store = ResultStore(path)
    event.listen(
        store._engine,
        "after_cursor_execute",
        lambda _c, _cursor, statement, *_: (
            os.kill(os.getpid(), signal.SIGKILL) if statement.startswith("INSERT INTO measurements") else None
        ),
    )
    store.add(small("half"))


def test_a_process_killed_in_the_middle_leaves_nothing(tmp_path):
    store = ResultStore(tmp_path / "results.db")
    store.add(small("before"))
    victim = get_context("fork").Process(target=kill_in_the_middle, args=(str(tmp_path / "results.db"),))
    victim.start()
    victim.join(30)
    assert victim.exitcode == -signal.SIGKILL
    assert [record.id for record in store.runs()] == ["before"]
    assert store.measurements() == small("before").measurements
    store.add(small("half"))
    assert len(store.runs()) == 2


def write_many(path: str, writer: int) -> None:
    for number in range(4):
        ResultStore(path).add(small(f"writer {writer}, run {number}"))


def test_processes_write_at_the_same_time_from_the_first_moment(tmp_path):
    path = str(tmp_path / "results.db")
    make_result()  # computed once, before the fork
    writers = [get_context("fork").Process(target=write_many, args=(path, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    store = ResultStore(path)
    assert len(store.runs()) == 12
    for record in store.runs():
        assert store.measurements(run=record.id) == small(record.id).measurements


def test_a_reader_does_not_hold_up_a_writer(tmp_path, monkeypatch):
    monkeypatch.setattr("oodscope.results.store._WAIT_SECONDS", 0.1)
    store = ResultStore(tmp_path / "results.db")
    store.add(small("before"))
    reader = sqlite3.connect(tmp_path / "results.db", isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    store.add(small("after"))
    assert reader.execute("SELECT count(*) FROM runs").fetchone() == (1,), "the reader sees one moment"
    reader.close()
    assert len(store.runs()) == 2


def test_reading_a_store_that_is_not_there_creates_nothing(tmp_path):
    with pytest.raises(StorageError, match=r"typo.db: no such result store"):
        ResultStore(tmp_path / "typo.db").runs()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("use", [ResultStore.runs, lambda store: store.add(small("x"))])
def test_a_file_that_is_no_database_gives_one_line(tmp_path, use):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but some notes that must stay as they are\n" * 50)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"notes.txt: .*not a database") as caught:
        use(ResultStore(path))
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_not_taken_for_a_store(tmp_path):
    with sqlite3.connect(tmp_path / "music.db") as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(StorageError, match="no table of runs"):
        ResultStore(tmp_path / "music.db").runs()


@pytest.mark.parametrize(
    ("url", "message"),
    [("nosuchdb://host/name", "nosuchdb"), ("://", "not a database URL")],
)
def test_a_bad_url_gives_one_line(url, message):
    with pytest.raises(StorageError, match=message) as caught:
        ResultStore(url)
    assert "\n" not in str(caught.value)


def test_a_password_is_never_shown():
    try:
        shown = repr(ResultStore("postgresql://reader:secret@localhost/results"))
    except StorageError as error:  # the driver is an extra and may be missing
        shown = str(error)
    assert "reader" in shown and "secret" not in shown


def test_tables_need_no_torch():
    code = "import sys, oodscope.results, oodscope.report; sys.exit('torch' in sys.modules)"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


@pytest.mark.parametrize("lost", [["peak_mib"], ["class_low", "class_high", "rank_low", "rank_high", "peak_mib"]])
def test_an_older_database_can_be_read_as_it_is(tmp_path, lost):
    ResultStore(tmp_path / "results.db").add(small("old", rows=3))
    with sqlite3.connect(tmp_path / "results.db") as connection:
        for name in lost:
            connection.execute(f"ALTER TABLE measurements DROP COLUMN {name}")
    store = ResultStore(tmp_path / "results.db")
    rows = store.measurements()
    assert {getattr(row, name) for row in rows for name in lost} == {None}
    assert [row.value for row in rows] == [row.value for row in small("old", rows=3).measurements]
    assert store.measurements(peak_mib=None) == rows
    assert len(store.measurements(peak_mib=3.5)) == 0
    with sqlite3.connect(tmp_path / "results.db") as connection:
        present = [line[1] for line in connection.execute("PRAGMA table_info(measurements)")]
    assert not set(lost) & set(present), "reading changed the database"


def test_an_older_database_grows_the_columns_it_lacks(tmp_path):
    store = ResultStore(tmp_path / "results.db")
    store.add(small("old", rows=3))
    with sqlite3.connect(tmp_path / "results.db") as connection:
        connection.execute("ALTER TABLE measurements DROP COLUMN peak_mib")
    again = ResultStore(tmp_path / "results.db")
    again.add(small("new", rows=3))
    assert {row.peak_mib for row in again.measurements(run="old")} == {None}
    assert again.measurements(run="new") == small("new", rows=3).measurements
