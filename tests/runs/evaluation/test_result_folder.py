"""A result folder is whole or it is not a result."""

import json

import pandas as pd
import pytest
from pydantic import ValidationError

from oodscope.base.errors import DataError, OodscopeError, StorageError
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result
from tests.results.factory import make_record, make_result

FILES = {"run.json", "measurements.parquet", "measurements.csv", "scores.parquet"}


@pytest.fixture
def folder(tmp_path):
    return make_result().save(tmp_path / "run")


def test_what_is_saved_is_loaded(folder):
    before, after = make_result(), Result.load(folder)
    assert {path.name for path in folder.iterdir()} == FILES
    assert after.record == before.record
    assert after.measurements == before.measurements
    pd.testing.assert_frame_equal(after.scores.frame, before.scores.frame, check_exact=True)


@pytest.mark.parametrize("step", ["pandas.DataFrame.to_csv", "oodscope.results.scorefile.write"])
def test_an_interrupted_save_does_not_look_like_a_result(tmp_path, monkeypatch, step):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(step, interrupted)
        make_result().save(tmp_path)
    assert any(tmp_path.iterdir()), "the interruption came before anything was written"
    with pytest.raises(DataError, match=r"no finished result here \(run.json is missing\)"):
        Result.load(tmp_path)
    make_result().save(tmp_path)
    assert Result.load(tmp_path).measurements == make_result().measurements


@pytest.mark.slow
def test_a_result_is_never_overwritten(folder):
    before = (folder / "run.json").read_bytes()
    with pytest.raises(StorageError, match="never overwritten"):
        make_result("another").save(folder)
    assert (folder / "run.json").read_bytes() == before


@pytest.mark.parametrize("name", ["measurements.parquet", "scores.parquet"])
def test_a_file_lost_or_changed_afterwards_is_noticed(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}: not the file saved"):
        Result.load(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"{name} is missing"):
        Result.load(folder)


def test_a_broken_or_strange_record_is_refused(folder):
    path = folder / "run.json"
    content = json.loads(path.read_text())
    content["record"]["benchmrk"] = content["record"].pop("benchmark")
    path.write_text(json.dumps(content))
    with pytest.raises(OodscopeError, match=r"run.json"):
        Result.load(folder)
    path.write_text("{}")
    with pytest.raises(DataError, match="not the record of a result"):
        Result.load(folder)
    path.write_text("{")
    with pytest.raises(DataError, match="not valid JSON"):
        Result.load(folder)


@pytest.mark.parametrize("created", ["2026-01-31T12:00:00", "2026-01-31T12:00:00+02:00", "yesterday"])
def test_the_time_of_a_run_must_be_in_utc(created):
    with pytest.raises(ValidationError):
        make_record(created=created)


def test_a_record_is_strict():
    with pytest.raises(ValidationError):
        make_record(seed="0")
    with pytest.raises(DataError, match="names no protocol"):
        Result(make_record(protocols=[]), make_result().measurements, make_result().scores)
    with pytest.raises(ValidationError, match="frozen"):
        make_record().seed = 1


def test_measurements_of_another_run_are_refused():
    result = make_result()
    with pytest.raises(DataError, match="'other'"):
        Result(make_record("other"), result.measurements, result.scores)


def test_the_saved_scores_alone_are_a_score_table(folder):
    assert ScoreTable.load(folder / "scores.parquet").detectors == make_result().scores.detectors
