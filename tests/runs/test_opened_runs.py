"""Runs of every kind are found by their files, each once, and what is wrong is said in one line."""

import json
import shutil

import pytest

from oodscope.base.errors import DataError
from oodscope.runs.attack.run import Attack
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.runs.opened import OpenedRuns, open_runs
from tests.results.factory import make_record, make_result
from tests.runs.crossval.crossval_factory import make_table
from tests.runs.generated.generated_world import study


def small_table():
    return make_table(detectors=("msp", "knn"), metrics=("auroc",), pairs=1, repetitions=1, folds=2, hold_outs=2)


def make_attack():
    """An attack of no search is enough to be told by its files."""
    old = make_result()
    rows = [{**vars(m)} | {"run": "attack-1"} for m in old.measurements[:3]]
    record = make_record("attack-1", protocols=["adversarial"])
    return Attack(Result(record, type(old.measurements).from_rows(rows), old.scores), ())


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    make_result().save(home / "b" / "one")
    make_attack().save(home / "attacks" / "found")
    table = home / "dcv"
    small_table().save(table)
    (table / "run.json").write_text(make_record("crossval-1").model_dump_json(), encoding="utf-8")
    study().save(home / "generated" / "judged")
    begun = home / "attacks" / "begun"
    begun.mkdir()
    (begun / "attack.json").write_text("[]", encoding="utf-8")
    return home


@pytest.mark.slow
def test_every_kind_is_found_below_one_folder(home):
    runs = open_runs([home])
    assert [result.record.id for result in runs.results] == [make_result().record.id]
    assert runs.results[0].measurements == make_result().measurements
    assert [attack.result.record.id for attack in runs.attacks] == ["attack-1"]
    assert len(runs.crossvals) == 1 and runs.crossvals[0].frame.equals(small_table().frame)
    assert [record.id for record in runs.crossval_records] == ["crossval-1"]
    assert isinstance(runs.generated[0], GeneratedStudy) and len(runs.generated) == 1
    # the runs inside a study are not told a second time
    networks = [result.record.id for result in study().results]
    assert [record.id for record in runs.records()] == [make_result().record.id, "attack-1", "crossval-1", *networks]


def test_protocols_are_named_once_and_in_one_order(home):
    expected = ["standard", "full_spectrum", "cross_validation", "adversarial", "generated"]
    assert open_runs([home]).protocols() == expected
    assert open_runs([home / "dcv", home / "b"]).protocols() == expected[:3]
    assert OpenedRuns(results=(make_result(),)).protocols() == expected[:2]


@pytest.mark.slow
def test_places_keep_their_order(home, tmp_path):
    other = make_result("glyphs-small_cnn-1").save(tmp_path / "a")
    ids = [result.record.id for result in open_runs([home / "b", other]).results]
    assert ids == ["glyphs-small_cnn-0", "glyphs-small_cnn-1"]
    assert [result.record.id for result in open_runs([str(other), home / "b"]).results] == ids[::-1]


def test_a_table_without_its_record_is_opened(tmp_path):
    small_table().save(tmp_path)
    runs = open_runs([tmp_path])
    assert runs.crossval_records == (None,) and runs.records() == []
    assert OpenedRuns(crossvals=runs.crossvals).crossval_records == (None,)


def test_what_is_wrong_is_said(home, tmp_path):
    for places, words in (
        ([], "no run to read"),
        ([tmp_path / "nowhere"], "nowhere: no such folder"),
        ([home / "attacks" / "begun"], "begun: no finished run here"),
        ([home, home / "b" / "one"], "one: the same run is named twice"),
        ([home / "dcv", home / "generated" / ".." / "dcv"], "the same run is named twice"),
    ):
        with pytest.raises(DataError, match=words):
            open_runs(places)
    copy = tmp_path / "copy"
    shutil.copytree(home / "b" / "one", copy)
    with pytest.raises(DataError, match="copy: a copy of run 'glyphs-small_cnn-0', which also lies in .*one"):
        open_runs([home, copy])


def test_a_broken_record_names_its_file(tmp_path):
    small_table().save(tmp_path)
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"run\.json: not valid JSON"):
        open_runs([tmp_path])
    (tmp_path / "run.json").write_text(json.dumps({"identity": 1}), encoding="utf-8")
    with pytest.raises(Exception, match=r"run\.json: unknown key 'identity'"):
        open_runs([tmp_path])
