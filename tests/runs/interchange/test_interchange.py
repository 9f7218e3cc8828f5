"""Results of other tools in, and ours out: numbers survive, pickles do not."""

import json
import pickle
from datetime import datetime, timedelta

import numpy as np
import pytest
import yaml

from oodscope.base.errors import DataError
from oodscope.results.run import RUNS
from oodscope.runs.evaluation.scores import evaluate_scores
from oodscope.runs.interchange.npz import ArrayNames, read_score_arrays
from oodscope.runs.interchange.reported import Reported, read_dictionaries, read_openood, reported
from oodscope.runs.interchange.sharing import (
    every_eval_ever,
    huggingface_entries,
    write_every_eval_ever,
    write_huggingface,
)

CSV = "dataset,FPR@95,AUROC,AUPR_IN,AUPR_OUT,ACC\ncifar100,57.12,87.32 ± 0.15,88.1,85.2,95.06\n"
CSV += "nearood,57.12,87.32,88.1,85.2,95.06\nsvhn,25.0,91.5,85.0,95.2,95.06\nfarood,25.0,91.5,85.0,95.2,95.06\n"


@pytest.fixture
def scores(tmp_path):
    """What OpenOOD keeps of two detectors: prediction, confidence where larger is more ID, label."""
    rng = np.random.default_rng(0)
    for detector, strength in (("msp", 1.0), ("knn", 2.0)):
        for name, shift, n in (("id", 0.0, 80), ("near", 1.0, 60)):
            conf = rng.normal(size=n) - strength * shift
            np.savez(tmp_path / f"{detector}-{name}.npz", conf=conf, pred=np.arange(n) % 3, label=np.zeros(n, int))
    return tmp_path


def files(folder):
    return {
        ("id_test", "id_test"): {each: folder / f"{each}-id.npz" for each in ("msp", "knn")},
        ("near", "birds"): {each: folder / f"{each}-near.npz" for each in ("msp", "knn")},
    }


def test_confidences_become_scores_and_keep_their_auroc(scores):
    frame = read_score_arrays(files(scores))
    result = evaluate_scores(frame, intervals="none")
    for detector in ("msp", "knn"):
        known, foreign = (np.load(scores / f"{detector}-{name}.npz")["conf"] for name in ("id", "near"))
        slow = np.mean([(f < k) + 0.5 * (f == k) for k in known for f in foreign])
        (row,) = result.measurements.filter(metric="auroc", detector=detector, set="birds")
        assert row.value == pytest.approx(slow)
    assert (frame["label"][frame["role"] == "id_test"] == 0).all()


def test_names_and_direction_are_the_users(tmp_path):
    np.savez(tmp_path / "a.npz", s=[1.0, 2.0])
    frame = read_score_arrays({("near", "x"): {"d": tmp_path / "a.npz"}}, ArrayNames("s", larger_is_ood=True))
    assert frame["d"].tolist() == [1.0, 2.0]


def test_pickles_and_other_mistakes_are_refused_in_one_line(scores, tmp_path):
    (tmp_path / "p.pkl").write_bytes(pickle.dumps({"conf": [1.0]}))
    np.savez(tmp_path / "o.npz", conf=np.array([{"run": "me"}], dtype=object))
    np.savez(tmp_path / "short.npz", conf=[0.5], pred=[1], label=[0])
    np.savez(tmp_path / "nan.npz", conf=[float("nan")])
    for name, words in {
        "p.pkl": "Pickles are not read",
        "o.npz": "not readable without running code",
        "gone.npz": "no such file",
        "nan.npz": "finite numbers",
    }.items():
        with pytest.raises(DataError, match=words):
            read_score_arrays({("near", "x"): {"d": tmp_path / name}})
    with pytest.raises(DataError, match="has no array 'logit'"):
        read_score_arrays({("near", "x"): {"d": tmp_path / "short.npz"}}, ArrayNames("logit"))
    with pytest.raises(DataError, match="another order, or set"):
        read_score_arrays({("id_test", "x"): {"a": scores / "msp-id.npz", "b": tmp_path / "short.npz"}})
    with pytest.raises(DataError, match="is no role"):
        read_score_arrays({("id_tset", "x"): {"a": scores / "msp-id.npz"}})


def test_tables_of_openood_are_reported_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.setattr(RUNS, "_registered", {**RUNS._registered, "reported": Reported})
    (tmp_path / "msp.csv").write_text(CSV)
    run = reported(read_openood({"msp": tmp_path / "msp.csv"}), "OpenOOD", benchmark="cifar10", model="r18")
    rows = {(row.metric, row.group, row.set): row.value for row in run.measurements}
    assert rows["auroc", "near", "cifar100"] == pytest.approx(0.8732)
    assert rows["fpr95_ood_positive", "far", "svhn"] == 0.25
    assert rows["auroc", "far", "mean"] == pytest.approx(0.915)
    assert rows["accuracy", "id", "id_test"] == pytest.approx(0.9506)
    assert all(row.unranked for row in run.measurements)
    again = Reported.load(run.save(tmp_path / "run"))
    assert again.rows == run.rows and again.tables().keys() == run.tables().keys()
    assert "87.32 ± 0.15" in str(run.tables()["auroc"].rows[0].cells[0])
    (tmp_path / "bad.csv").write_text("dataset,AUROC\nx,high\n")
    for name, words in (("bad.csv", "'high' is no number"), ("gone.csv", "not readable")):
        with pytest.raises(DataError, match=words):
            read_openood({"msp": tmp_path / name})


def test_dictionaries_of_pytorch_ood(tmp_path):
    each = {"AUROC": 0.9, "AUPR-IN": 0.8, "AUPR-OUT": 0.7, "FPR95TPR": 0.3, "Dataset": "Textures", "Detector": "MSP"}
    (tmp_path / "r.json").write_text(json.dumps([each]))
    rows = read_dictionaries(tmp_path / "r.json")
    assert {row.metric: row.value for row in rows} == {
        "auroc": 0.9, "aupr_in_trapezoid": 0.8, "aupr_out_trapezoid": 0.7, "fpr95_ood_positive": 0.3,
    }  # fmt: skip
    assert {(row.detector, row.set) for row in rows} == {("MSP", "Textures")}
    (tmp_path / "r.csv").write_text(",".join(each) + "\n" + ",".join(map(str, each.values())) + "\n")
    assert read_dictionaries(tmp_path / "r.csv") == rows
    (tmp_path / "r.json").write_text(json.dumps([{**each, "AUROC": 90}]))
    with pytest.raises(DataError, match="shares between 0 and 1"):
        read_dictionaries(tmp_path / "r.json")


@pytest.fixture
def result(scores):
    return evaluate_scores(read_score_arrays(files(scores)), intervals="fast", model="me/net")


def test_huggingface_yaml_has_the_documented_fields(result, tmp_path):
    write_huggingface(result, tmp_path / "a.yaml", "me/bench", url="https://example.org")
    entries = yaml.safe_load((tmp_path / "a.yaml").read_text())
    assert entries == huggingface_entries(result, "me/bench", url="https://example.org")
    for entry in entries:
        assert set(entry) == {"dataset", "value", "date", "notes", "source"}
        assert set(entry["dataset"]) == {"id", "task_id"} and 0 <= entry["value"] <= 100
        assert datetime.fromisoformat(entry["date"]).utcoffset() == timedelta(0)
    assert "interval" in entries[0]["notes"]
    with pytest.raises(DataError, match="OWNER/NAME"):
        write_huggingface(result, tmp_path / "b.yaml", "bench")
    with pytest.raises(DataError, match="unknown metric"):
        huggingface_entries(result, "me/bench", metric="auroK")


TEXT, NUMBER, WHOLE, TRUTH, NOTHING = ({"type": kind} for kind in ("string", "number", "integer", "boolean", "null"))
TEXTS = {"type": "array", "items": TEXT}
WORDS = {"type": "object", "additionalProperties": TEXT}


def closed(optional=(), **fields):
    """An object of these fields, all but the optional ones required, and no others."""
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


RESULT = closed(
    evaluation_name=TEXT,
    source_data=closed(dataset_name=TEXT, source_type={"const": "other"}, additional_details=WORDS),
    evaluation_timestamp=TEXT,
    metric_config=closed(
        evaluation_description=TEXT,
        lower_is_better=TRUTH,
        score_type={"enum": ["binary", "continuous", "levels"]},
        min_score=NUMBER,
        max_score=NUMBER,
    ),
    score_details=closed(
        ["uncertainty"],
        score=NUMBER,
        uncertainty=closed(
            confidence_interval=closed(lower=NUMBER, upper=NUMBER, method=TEXT, confidence_level=NUMBER)
        ),
    ),
)
AGGREGATE = closed(
    ["detailed_evaluation_results"],
    schema_version={"const": "0.2.1"},
    evaluation_id=TEXT,
    evaluation_timestamp=TEXT,
    retrieved_timestamp={"type": "string", "pattern": "^[0-9]+$"},
    source_metadata=closed(
        source_name=TEXT,
        source_type={"enum": ["documentation", "evaluation_run"]},
        source_organization_name=TEXT,
        evaluator_relationship={"enum": ["first_party", "third_party", "collaborative", "other"]},
    ),
    eval_library=closed(name=TEXT, version=TEXT),
    model_info=closed(name=TEXT, id=TEXT),
    evaluation_results={"type": "array", "items": RESULT},
    detailed_evaluation_results=closed(
        format={"enum": ["jsonl", "json"]},
        file_path=TEXT,
        hash_algorithm={"enum": ["sha256", "md5"]},
        checksum=TEXT,
        total_rows=WHOLE,
    ),
)
INSTANCE = closed(
    schema_version={"const": "instance_level_eval_0.2.1"},
    evaluation_id=TEXT,
    model_id=TEXT,
    evaluation_name=TEXT,
    sample_id=TEXT,
    interaction_type={"const": "single_turn"},
    input=closed(raw=TEXT, reference=TEXTS),
    output=closed(raw=TEXTS),
    messages=NOTHING,
    answer_attribution={
        "type": "array",
        "items": closed(turn_idx=WHOLE, source=TEXT, extracted_value=TEXT, extraction_method=TEXT, is_terminal=TRUTH),
    },
    evaluation=closed(score=NUMBER, is_correct=TRUTH),
    metadata=WORDS,
)
"""The fields of Every Eval Ever 0.2.1 that we write, with the types of its published schema and no others."""


def test_every_eval_ever_has_the_fields_and_types_of_its_schema(result, tmp_path):
    validator = pytest.importorskip("jsonschema").Draft7Validator
    first, second = write_every_eval_ever(result, tmp_path / "e.json", organization="me")
    validator(AGGREGATE).validate(json.loads(first.read_text()))
    lines = second.read_text().splitlines()
    for line in lines:
        validator(INSTANCE).validate(json.loads(line))
    broken = {**json.loads(lines[0]), "metadata": {"role": 1}}
    assert list(validator(INSTANCE).iter_errors(broken)), "the description can say no"


def test_every_eval_ever_has_what_its_schema_requires(result, tmp_path):
    first, second = write_every_eval_ever(result, tmp_path / "e.json", organization="me")
    content = json.loads(first.read_text())
    assert {
        *("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library"),
        *("evaluation_results",),
    } <= set(content)
    for each in content["evaluation_results"]:
        assert {"evaluation_name", "source_data", "metric_config", "score_details"} <= set(each)
        interval = each["score_details"]["uncertainty"]["confidence_interval"]
        assert interval["lower"] <= each["score_details"]["score"] <= interval["upper"]
        assert each["source_data"]["source_type"] == "other" and not each["metric_config"]["lower_is_better"]
    lines = [json.loads(line) for line in second.read_text().splitlines()]
    assert len(lines) == content["detailed_evaluation_results"]["total_rows"] == 2 * 140
    for line in lines:
        assert {
            *("schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "interaction_type"),
            *("input", "output", "answer_attribution", "evaluation"),
        } <= set(line)
        assert line["evaluation_id"] == content["evaluation_id"] and all(
            isinstance(value, str) for value in line["metadata"].values()
        )
    assert every_eval_ever(result, organization="me")["model_info"]["id"] == "me/net"


def test_instances_carry_enough_to_compute_the_auroc_again(result, tmp_path):
    _, second = write_every_eval_ever(result, tmp_path / "e.json", organization="me")
    lines = [json.loads(line) for line in second.read_text().splitlines()]
    mine = [line for line in lines if line["metadata"]["detector"] == "knn"]
    known, foreign = (
        [line["evaluation"]["score"] for line in mine if line["input"]["reference"] == [truth]]
        for truth in ("ID", "OOD")
    )
    (row,) = result.measurements.filter(metric="auroc", detector="knn", set="birds")
    assert np.mean([(f > k) + 0.5 * (f == k) for k in known for f in foreign]) == pytest.approx(row.value)
