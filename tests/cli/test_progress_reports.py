"""The commands report to the store how far they are, where their runs lie, and take a store by name."""

from pathlib import Path

import pytest

from oodscope.base.config import parse
from oodscope.base.errors import StorageError
from oodscope.execution.progress import SILENT
from oodscope.jobs import attack as attacking
from oodscope.jobs import crossval as crossval_job
from oodscope.jobs import job
from oodscope.jobs.storing import store_of
from oodscope.results.store import reporting
from oodscope.results.store.store import ResultStore
from tests.results.factory import make_result
from tests.results.test_reporting import until


def evaluation(output: Path, kind=job.Job):
    declared = {"benchmark": "glyphs", "model": {"architecture": "small_cnn", "train": {}}, "detectors": ["msp"]}
    return parse(kind, declared | {"output": str(output)}, "test")


@pytest.fixture
def heard(monkeypatch):
    """What was reported to the store while a command ran."""
    lines = []
    monkeypatch.setattr(reporting, "_SECONDS", 0.02)
    report = ResultStore.report_progress
    monkeypatch.setattr(
        ResultStore, "report_progress", lambda store, line: (report(store, line), lines.append((store.name, line)))
    )
    return lines


def wait_inside(progress, lines) -> None:
    with progress.stage("extract", 8) as advance:
        advance(2)
        until(lambda: lines and lines[-1][1].done == 2)


@pytest.mark.slow
def test_an_evaluation_is_seen_while_it_runs_and_found_afterwards(heard, monkeypatch, tmp_path):
    def evaluated(_job, _detectors, _score, progress):
        wait_inside(progress, heard)
        return make_result()

    monkeypatch.setattr(job, "_evaluated", evaluated)
    _, folder = job.execute(evaluation(tmp_path / "runs"), SILENT)
    name, line = heard[-1]
    assert name == str(tmp_path / "runs" / "results.sqlite")
    assert (line.what, line.stage, line.total) == ("evaluate small_cnn on glyphs", "extract", 8)
    store = ResultStore(tmp_path / "runs" / "results.sqlite")
    assert store.running() == [] and store.folder(make_result().record.id) == folder


def test_an_attack_and_a_cross_validation_are_seen_too(heard, monkeypatch, tmp_path):
    def attacked(_job, progress):
        wait_inside(progress, heard)
        raise StorageError("enough")

    monkeypatch.setattr(attacking, "_attack", attacked)
    with pytest.raises(StorageError, match="enough"):
        attacking.execute_attack(evaluation(tmp_path, attacking.AttackJob), SILENT)
    assert heard[-1][1].what == "attack small_cnn on glyphs"
    heard.clear()

    def paired(_job, progress):
        wait_inside(progress, heard)
        raise StorageError("enough")

    monkeypatch.setattr(crossval_job, "_pairs", paired)
    folded = parse(
        crossval_job.CrossvalJob,
        {"benchmark": ["glyphs"], "model": "small_cnn", "backbone": "full", "output": str(tmp_path)},
        "test",
    )
    with pytest.raises(StorageError, match="enough"):
        crossval_job.execute_crossval(folded, SILENT)
    assert heard[-1][1].what == "crossval small_cnn"
    assert ResultStore(tmp_path / "results.sqlite").running() == []


def test_the_environment_names_a_store_for_all(monkeypatch, tmp_path):
    assert store_of(tmp_path).path == tmp_path / "results.sqlite"
    monkeypatch.setenv("OODSCOPE_STORE", str(tmp_path / "all.db"))
    assert store_of(tmp_path / "runs").path == tmp_path / "all.db"
    monkeypatch.setenv("OODSCOPE_STORE", "nosuchdb://host/name")
    with pytest.raises(StorageError, match="nosuchdb"):
        job.execute(evaluation(tmp_path), SILENT)
