"""Runs of every kind are found by ``run.json``, each once, and what is wrong is said in one line."""

import json
import shutil

import pytest

import oodscope as oods
from oodscope.base.errors import DataError, UsageError
from oodscope.results.opening import folder_of_run, of_kind, open_run, open_runs
from oodscope.runs.attack.run import Attack
from oodscope.runs.audit.run import Audit, ClassPair, ImagePair, ImageRef
from oodscope.runs.crossval.run import CrossValidation
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.runs.models.run import Study, study_of
from tests.report.whole_runs import crossval, judged
from tests.results.factory import make_record, make_result
from tests.runs.crossval.crossval_factory import make_table
from tests.runs.generated.generated_world import study


def small_table():
    return make_table(detectors=("msp", "knn"), metrics=("auroc",), pairs=1, repetitions=1, folds=2, hold_outs=2)


def make_attack():
    """An attack of no search is enough to be found."""
    old = make_result()
    rows = [{**vars(m)} | {"run": "attack-1"} for m in old.measurements[:3]]
    record = make_record("attack-1", protocols=["attack"])
    return Attack(Result(record, type(old.measurements).from_rows(rows), old.scores), ())


def make_audit():
    one, two = ImageRef("train", "id_train", 3, "train/3", "cat"), ImageRef("test", "id_test", 5, "test/5", "cat")
    pair = ImagePair("contamination", "exact", "pixels", one, two, 1.0)
    same = ClassPair("contamination", "pets", "near", "cat", "cat", "same", "by name", 12)
    return Audit("b", "1", [pair], [same], ["a note"], {"train": 10}, {"exact": 0.5})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    make_result().save(home / "b" / "one")
    make_attack().save(home / "attacks" / "found")
    crossval(small_table()).save(home / "dcv")
    study().save(home / "generated" / "judged")
    make_audit().save(home / "z-audit")
    begun = home / "attacks" / "begun"
    begun.mkdir()
    (begun / "attack.json").write_text("[]", encoding="utf-8")
    return home


@pytest.mark.slow
def test_every_kind_is_found_below_one_folder(home):
    runs = oods.open_runs(home)
    assert [type(run) for run in runs] == [Attack, Result, CrossValidation, GeneratedStudy, Audit]
    assert [run.kind for run in runs] == ["attack", "evaluation", "crossval", "generated", "audit"]
    attack, result, folds, generated, audit = runs
    assert result.measurements == make_result().measurements and attack.record.id == "attack-1"
    assert folds.draws.frame.equals(small_table().frame) and folds.record.id == "crossval-1"
    assert [each.record.id for each in generated.results] == [each.record.id for each in study().results]
    assert (audit.pairs, audit.classes, audit.record.created) == (
        make_audit().pairs,
        make_audit().classes,
        audit.created,
    )
    assert audit.verdicts() == make_audit().verdicts() and audit.notes == ["a note"]
    assert of_kind(runs, Result) == (result,)


@pytest.mark.slow
def test_every_kind_answers_the_one_interface(home):
    for run in (*open_runs(home), study_of([judged()])):
        if run.record.id == "attack-1":  # no search, so nothing to show
            continue
        tables = run.tables()
        assert run.table().render("json") == next(iter(tables.values())).render("json")
        for name, table in tables.items():
            for format in ("markdown", "csv", "json", "latex", "html", "rich"):
                assert run.table(name).render(format) == table.render(format)
        chapter = run.chapter()
        assert chapter.title and chapter.anchor == run.kind and chapter.blocks
        assert all(trial.entries for trial in run.trials())
        assert all(row.run for row in run.measurements)
        assert json.loads(run.record.model_dump_json()) and run.records()


def test_the_measurements_of_a_cross_validation_are_the_estimates_of_its_study():
    rows = crossval(small_table()).measurements
    truth = small_table().hold_outs("auroc").mean(axis=0)
    assert [row.value for row in rows] == truth.ravel().tolist()
    assert {row.protocol for row in rows} == {"crossval"} and rows.distinct("detector") == ["msp", "knn"]


@pytest.mark.slow
def test_a_study_of_models_is_saved_beside_its_evaluations(tmp_path):
    judged().save(tmp_path / "one")
    made = study_of([judged()])
    made.save(tmp_path / "study")
    opened = open_run(tmp_path)
    assert isinstance(opened, Study) and opened.record == made.record
    assert opened.measurements == made.measurements and opened.members == made.members
    assert opened.table("summary").render("csv") == made.summary().render("csv")
    assert opened.record.parts == [judged().record.id]


@pytest.mark.slow
def test_places_keep_their_order(home, tmp_path):
    other = make_result("glyphs-small_cnn-1").save(tmp_path / "a")
    ids = [run.record.id for run in open_runs([home / "b", other])]
    assert ids == ["glyphs-small_cnn-0", "glyphs-small_cnn-1"]
    assert [run.record.id for run in open_runs([str(other), home / "b"])] == ids[::-1]


def test_the_one_run_below_a_folder_is_meant_by_it(tmp_path):
    first = make_result().save(tmp_path / "mine" / "first")
    assert folder_of_run(tmp_path / "mine") == folder_of_run(first) == first
    assert Result.open(tmp_path / "mine").record == Result.load(first).record
    assert folder_of_run(tmp_path / "none") == tmp_path / "none"
    make_result().save(tmp_path / "mine" / "second")
    with pytest.raises(UsageError, match=r"mine holds 2 runs; name the folder of one: .*first, .*second$"):
        Result.open(tmp_path / "mine")


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
    with pytest.raises(DataError, match="a run of kind 'crossval', where one of kind 'attack' is needed"):
        Attack.load(home / "dcv")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("{", r"run\.json: not valid JSON"),
        (json.dumps({"identity": 1}), r"run\.json: not the record of a result"),
        ({"schema": 1}, r"run\.json: schema 1, this version reads 2; run it again"),
        ({"kind": "tomography"}, "a run of kind 'tomography', which is not installed here. Known: .*evaluation"),
        ({"record": {"identity": 1}}, r"run\.json: unknown key 'identity'"),
    ],
)
def test_a_broken_record_names_its_file(tmp_path, change, words):
    crossval(small_table()).save(tmp_path)
    path = tmp_path / "run.json"
    text = change if isinstance(change, str) else json.dumps({**json.loads(path.read_text()), **change})
    path.write_text(text, encoding="utf-8")
    with pytest.raises(oods.OodscopeError, match=words):
        open_runs([tmp_path])
