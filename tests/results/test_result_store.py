"""The store appends whole runs, from many processes, and says in one line what is wrong."""

import os
import signal
import sqlite3
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from time import monotonic

import pytest
from sqlalchemy import event, inspect, text

from oodscope.base.errors import OodscopeError, StorageError
from oodscope.results.measurement import Measurements
from oodscope.results.store.store import ResultStore, Running
from oodscope.runs.evaluation.run import Result
from tests.results.factory import make_record, make_result


def small(run: str, rows: int = 12) -> Result:
    few = make_result().to_dataframe().head(rows).assign(run=run)
    return Result(make_record(run), Measurements.from_dataframe(few), make_result().scores)


@pytest.mark.slow
def test_runs_and_measurements_come_back_equal(store_location):
    store = ResultStore(store_location)
    store.add(make_result())
    again = ResultStore(store_location)
    assert again.runs() == [make_result().record]
    assert again.measurements() == make_result().measurements


def test_filters_are_those_of_measurements(store_location):
    store = ResultStore(store_location)
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


def test_runs_are_listed_oldest_first(store_location):
    store = ResultStore(store_location)
    for run, day in (("a", "03"), ("b", "01"), ("c", "02")):
        result = small(run)
        record = make_record(run, created=f"2026-01-{day}T00:00:00+00:00")
        store.add(Result(record, result.measurements, result.scores))
    assert [record.id for record in store.runs()] == ["b", "c", "a"]


def test_a_run_is_never_overwritten(store_location):
    store = ResultStore(store_location)
    store.add(small("one", rows=3))
    with pytest.raises(StorageError, match="run 'one' is there; results are appended, never overwritten"):
        store.add(small("one", rows=5))
    assert store.measurements() == small("one", rows=3).measurements


def test_an_error_in_the_middle_leaves_nothing(store_location):
    store = ResultStore(store_location)
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


@pytest.mark.slow
def test_a_process_killed_in_the_middle_leaves_nothing(store_location):
    store = ResultStore(store_location)
    store.add(small("before"))
    victim = get_context("fork").Process(target=kill_in_the_middle, args=(store_location,))
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


@pytest.mark.slow
def test_processes_write_at_the_same_time_from_the_first_moment(store_location):
    make_result()  # computed once, before the fork
    writers = [get_context("fork").Process(target=write_many, args=(store_location, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    store = ResultStore(store_location)
    assert len(store.runs()) == 12
    for record in store.runs():
        assert store.measurements(run=record.id) == small(record.id).measurements


def test_a_reader_does_not_hold_up_a_writer(tmp_path, monkeypatch):
    monkeypatch.setattr("oodscope.results.store.store._WAIT_SECONDS", 0.1)
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


@pytest.mark.slow
def test_tables_need_no_torch():
    code = "import sys, oodscope.results, oodscope.report; sys.exit('torch' in sys.modules)"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


def forget_columns(store: ResultStore, table: str, columns: list[str]) -> None:
    with store._engine.begin() as connection:
        for name in columns:
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {name}"))


@pytest.mark.slow
@pytest.mark.parametrize("lost", [["peak_mib"], ["class_low", "class_high", "rank_low", "rank_high", "peak_mib"]])
def test_an_older_database_can_be_read_as_it_is(store_location, lost):
    ResultStore(store_location).add(small("old", rows=3))
    store = ResultStore(store_location)
    forget_columns(store, "measurements", lost)
    rows = store.measurements()
    assert {getattr(row, name) for row in rows for name in lost} == {None}
    assert [row.value for row in rows] == [row.value for row in small("old", rows=3).measurements]
    assert store.measurements(peak_mib=None) == rows
    assert len(store.measurements(peak_mib=3.5)) == 0
    with store._engine.connect() as connection:
        present = [column["name"] for column in inspect(connection).get_columns("measurements")]
    assert not set(lost) & set(present), "reading changed the database"


def test_an_older_database_grows_the_columns_it_lacks(store_location):
    store = ResultStore(store_location)
    store.add(small("old", rows=3))
    forget_columns(store, "measurements", ["peak_mib"])
    forget_columns(store, "runs", ["folder"])
    again = ResultStore(store_location)
    assert again.folder("old") is None and len(again.runs()) == 1
    again.add(small("new", rows=3))
    assert {row.peak_mib for row in again.measurements(run="old")} == {None}
    assert again.measurements(run="new") == small("new", rows=3).measurements


def test_a_store_from_before_anything_was_reported_has_nothing_running(store_location):
    store = ResultStore(store_location)
    store.add(small("old", rows=3))
    with store._engine.begin() as connection:
        connection.execute(text("DROP TABLE running"))
    assert store.running() == []
    store.report_progress(line("later"))
    assert [each.id for each in store.running()] == ["later"]


def add_one(location: str, start, number: int) -> None:
    store = ResultStore(location)
    start.wait(30)
    store.report_progress(line(f"writer {number}"))
    store.add(small(f"run {number}", rows=3))


@pytest.mark.slow
@pytest.mark.parametrize("count", [6, pytest.param(64, marks=pytest.mark.soak)])
@pytest.mark.parametrize("lost", [[], ["peak_mib", "rank_low"]])
def test_many_processes_may_make_the_tables_at_once(store_location, lost, count):
    small("x", rows=3)
    before = 0
    if lost:
        ResultStore(store_location).add(small("before", rows=3))
        forget_columns(ResultStore(store_location), "measurements", lost)
        before = 1
    fork = get_context("fork")
    start = fork.Event()
    writers = [fork.Process(target=add_one, args=(store_location, start, number)) for number in range(count)]
    for writer in writers:
        writer.start()
    start.set()
    for writer in writers:
        writer.join(300)
    assert [writer.exitcode for writer in writers] == [0] * count
    store = ResultStore(store_location)
    assert store.count() == len(store.runs()) == count + before
    assert len(store.running()) == count
    for number in range(count):
        assert store.measurements(run=f"run {number}") == small(f"run {number}", rows=3).measurements


def test_a_store_is_made_with_all_its_tables_or_not_yet(store_location, tmp_path):
    store = ResultStore(store_location)
    assert not store.made()
    if store.path is not None:  # the first half of what a writer does
        store.path.parent.mkdir()
        with store._engine.begin() as connection:
            connection.execute(text("PRAGMA journal_mode=WAL"))
    assert not store.made()
    store.report_progress(line("first"))
    assert store.made() and store.runs() == []


def line(id: str, **changes) -> Running:
    values = {"what": "evaluate", "host": "here", "process": 7, "started": 5.0, "updated": 1e9, "stage": "score"}
    return Running(**({"id": id, **values, "done": 3, "total": 2**40} | changes))


def test_what_is_reported_last_stands_there_until_it_is_forgotten(store_location):
    store = ResultStore(store_location)
    store.report_progress(line("b", started=2.0))
    store.report_progress(line("a", started=3.0))
    store.report_progress(line("b", started=2.0, done=9, updated=1e9 + 1))
    assert store.running() == [line("b", started=2.0, done=9, updated=1e9 + 1), line("a", started=3.0)]
    assert store.runs() == []
    store.forget("b")
    assert store.running() == [line("a", started=3.0)]


def test_what_nobody_renewed_for_a_day_goes_with_the_next_that_begins(store_location):
    store = ResultStore(store_location)
    day = 24 * 3600.0
    store.report_progress(line("killed", updated=1e9))
    store.report_progress(line("young", updated=1e9 + 2))
    store.report_progress(line("new", updated=1e9 + day + 1))
    assert {each.id for each in store.running()} == {"young", "new"}
    assert line("x", updated=100.0).stale(120.5) and not line("x", updated=100.0).stale(119.5)


def test_a_store_knows_where_its_runs_lie_and_moves_with_them(tmp_path):
    below, other = tmp_path / "runs" / "attacks" / "one", tmp_path / "elsewhere"
    store = ResultStore(tmp_path / "runs" / "results.db")
    for run, folder in {"one": below, "two": other, "beside": None, "gone": tmp_path / "gone"}.items():
        store.add(small(run, rows=3), folder)
    for folder in (below, other, tmp_path / "runs" / "beside"):
        folder.mkdir(parents=True)
        assert store.folder(folder.name if folder is not other else "two") is None, "nothing saved there yet"
        (folder / "run.json").write_text("{}")
    (tmp_path / "runs").rename(tmp_path / "moved")
    moved = ResultStore(tmp_path / "moved" / "results.db")
    assert moved.folder("one") == tmp_path / "moved" / "attacks" / "one"
    assert moved.folder("two") == other
    assert moved.folder("beside") == tmp_path / "moved" / "beside"
    assert moved.folder("gone") is None and moved.folder("never heard of") is None


def test_a_store_in_a_database_knows_folders_by_their_full_path(postgres, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = ResultStore(postgres.new_database())
    store.add(small("one", rows=3), Path("here"))
    store.add(small("two", rows=3))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "run.json").write_text("{}")
    assert store.folder("one") == tmp_path / "here" and store.folder("two") is None


def test_a_busy_database_refuses_in_time_and_in_one_line(store_location):
    store = ResultStore(store_location)
    store.add(small("before", rows=3))
    with store._engine.connect() as blocker:
        if store.path is None:
            blocker.execute(text("LOCK TABLE running IN ACCESS EXCLUSIVE MODE"))
        else:
            blocker.exec_driver_sql("BEGIN IMMEDIATE")
        started = monotonic()
        with pytest.raises(StorageError, match="the database refused"):
            ResultStore(store_location, wait_seconds=0.2).report_progress(line("late"))
        assert monotonic() - started < 5
    store.report_progress(line("now"))


def test_an_unreachable_database_is_one_line(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(StorageError, match="the database refused") as caught:
        ResultStore(f"postgresql://reader:secret@/none?host={tmp_path}&port=4").runs()
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


def test_a_missing_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StorageError, match=r"pip install 'oodscope\[postgres\]'"):
        ResultStore("postgresql://reader@localhost/results")


def test_bare_names_of_postgresql_mean_one_driver():
    pytest.importorskip("psycopg")
    for name in ("postgres", "postgresql", "postgresql+psycopg"):
        assert ResultStore(f"{name}://reader@localhost/results").url.drivername == "postgresql+psycopg"
