"""Arrays and plain scores in the place of images: the same numbers, and one line for every mistake."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

import oodscope as oods
from oodscope.activations.activations import Activations
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import DataError, DetectorError, OodscopeError
from oodscope.leaderboard.site.render import write_site
from oodscope.leaderboard.verify.submitting import submit
from oodscope.leaderboard.verify.verifying import verify, verify_all
from oodscope.protocols.human_centric.protocol import HumanCentric
from oodscope.results.measurement import Measurement
from tests.tiny import benchmark, classifier

GROUPS = ("near", "far", "csid")
DIFFERENT = ("run", "benchmark", "benchmark_version", "model", "fit_seconds", "microseconds_per_image", "peak_mib")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return ActivationStore(tmp_path_factory.mktemp("activations"))


def extracted(store, network=None):
    """The roles of the tiny benchmark, each with what ``evaluate`` extracts."""
    sets = {"near": {}, "far": {}, "csid": {}}
    for role, images in benchmark().members():
        found = store.extract(network or classifier(), images)
        if role in GROUPS:
            sets[role][images.name] = found
        else:
            sets[role] = found
    return sets


def arrays(found, **changes):
    """Activations as plain arrays."""
    plain = {"logits": found.logits.numpy(), "features": found.features.numpy(), "labels": found.labels.numpy()}
    return {key: value for key, value in {**plain, **changes}.items() if value is not None}


def plain_sets(store, *, head=False, **changes):
    """All roles as mappings of arrays; ``changes`` replace keys in each."""

    def one(found):
        more = {"weight": found.head.weight.numpy(), "bias": found.head.bias.numpy()} if head else {}
        return arrays(found, **more, **changes)

    sets = extracted(store)
    return {
        role: {name: one(each) for name, each in found.items()} if role in GROUPS else one(found)
        for role, found in sets.items()
    }


def head_of(store):
    return extracted(store)["id_test"].head


def by_place(result):
    places = ("protocol", "metric", "group", "set", "detector")
    return {tuple(getattr(row, name) for name in places): row for row in result.measurements}


def assert_same_numbers(mine, theirs, unknown=()):
    for name in mine.scores.detectors:
        assert np.array_equal(mine.scores.frame[name].to_numpy(), theirs.scores.frame[name].to_numpy()), name
    for column in ("set", "role", "label", "own_class", "prediction"):
        assert mine.scores.frame[column].astype(str).tolist() == theirs.scores.frame[column].astype(str).tolist()
    expected = by_place(theirs)
    assert len(mine.measurements) > 0
    for place, row in by_place(mine).items():
        for field in fields(Measurement):
            if field.name not in (*DIFFERENT, *unknown):
                assert getattr(row, field.name) == getattr(expected[place], field.name), (place, field.name)


# the same numbers


@pytest.mark.slow
def test_every_detector_that_applies_says_what_evaluate_says(store):
    mine = oods.evaluate_activations(**extracted(store), seed=3)
    assert len(mine.scores.detectors) >= 40
    assert_same_numbers(mine, oods.evaluate(classifier(), benchmark(), mine.scores.detectors, store=store, seed=3))
    assert {"odin", "gram", "rankfeat", "mds_ensemble"} <= set(mine.record.skipped)
    assert all("only activations were given" in reason for reason in mine.record.skipped.values())


@pytest.mark.slow
def test_every_protocol_and_a_search_say_what_evaluate_says(store):
    asked = {
        "detectors": ["msp", "knn", "react"],
        "protocols": ["standard", "full_spectrum", HumanCentric(threshold_split=True)],
        "tune": "ood_val",
    }
    theirs = oods.evaluate(classifier(), benchmark(), store=store, **asked)
    assert_same_numbers(oods.evaluate_activations(**extracted(store), **asked), theirs)


@pytest.mark.slow
def test_every_form_of_the_same_arrays_gives_the_same_result(store, tmp_path):
    names = ["msp", "vim"]
    expected = oods.evaluate_activations(**extracted(store), detectors=names)
    head = head_of(store)
    plain = plain_sets(store, head=True)
    saved = {"npz": {}, "safetensors": {}}
    for role, found in plain.items():
        for name, each in (found if role in GROUPS else {role: found}).items():
            np.savez(tmp_path / f"{name}.npz", **each)
            save_file({key: torch.from_numpy(value) for key, value in each.items()}, tmp_path / f"{name}.safetensors")
            for kind, paths in saved.items():
                path = tmp_path / f"{name}.{kind}"
                paths.update({role: {**paths.get(role, {}), name: path}} if role in GROUPS else {role: path})
    forms = [plain, saved["npz"], saved["safetensors"]]
    results = [oods.evaluate_activations(**form, detectors=names) for form in forms]
    results.append(oods.evaluate_activations(**plain_sets(store), head=(head.weight, head.bias), detectors=names))
    for result in results:
        assert_same_numbers(result, expected)
        assert {name: each.fingerprint for name, each in result.record.sets.items()} == {
            name: each.fingerprint for name, each in expected.record.sets.items()
        }
        assert result.record.benchmark_version == expected.record.benchmark_version


def small(**changes):
    """Arrays of 30 rows in 3 classes, as anybody may have them; the rest of the arguments of a quick evaluation."""
    rng = np.random.default_rng(0)

    def one(count, shift):
        logits = rng.normal(size=(count, 3)) + shift * np.eye(3)[np.arange(count) % 3]
        return {"logits": logits, "features": rng.random((count, 5)), "labels": np.arange(count) % 3}

    given = {"id_train": one(60, 3), "id_test": one(30, 3), "near": {"letters": one(20, 0)}, "detectors": ["msp"]}
    return {**given, **changes}


def test_a_set_is_known_by_a_hash_of_its_arrays():
    first, again = (oods.evaluate_activations(**small()).record for _ in range(2))
    changed = small()
    changed["near"]["letters"]["logits"][0, 0] += 1e-3
    other = oods.evaluate_activations(**changed).record
    assert first.sets["letters"].fingerprint == again.sets["letters"].fingerprint != other.sets["letters"].fingerprint
    assert first.sets["id_test"].fingerprint == other.sets["id_test"].fingerprint
    # another network on the same samples is judged on the same benchmark
    assert first.benchmark_version == other.benchmark_version
    assert any("hash of its arrays" in note for note in first.notes)


def test_a_given_prediction_counts():
    given = small()
    given["id_test"]["prediction"] = (given["id_test"]["labels"] + 1) % 3
    rows = by_place(oods.evaluate_activations(**given))
    assert rows["standard", "accuracy", "id", "id_test", ""].value == 0.0


def test_sample_ids_are_row_numbers_unless_given():
    given = small()
    given["id_test"]["sample_id"] = np.array([f"doc {row}" for row in range(30)])
    frame = oods.evaluate_activations(**given).scores.frame
    assert frame.loc[frame["set"] == "id_test", "sample_id"].tolist()[:2] == ["doc 0", "doc 1"]
    assert frame.loc[frame["set"] == "letters", "sample_id"].tolist()[:2] == ["0", "1"]


def test_without_labels_there_is_no_accuracy_and_what_needs_them_is_named():
    given = small()
    for part in (given["id_train"], given["id_test"], given["near"]["letters"]):
        del part["labels"]
    result = oods.evaluate_activations(**{**given, "detectors": "all"})
    assert not result.measurements.filter(metric="accuracy")
    assert "labels" in result.record.skipped["mds"]
    assert "knn" in result.scores.detectors
    with pytest.raises(DetectorError, match="mds: needs the labels"):
        oods.evaluate_activations(**{**given, "detectors": ["mds"]})
    with pytest.raises(DataError, match="human_centric needs the labels of ID images; set 'id_train' has none"):
        oods.evaluate_activations(**given, id_val=given["id_train"], protocols=["human_centric"])


def test_features_alone_are_enough_for_detectors_of_features():
    given = small(detectors=["knn"])
    for part in (given["id_train"], given["id_test"], given["near"]["letters"]):
        del part["logits"]
    result = oods.evaluate_activations(**given)
    assert result.scores.detectors == ["knn"]
    assert (result.scores.frame["prediction"] == -1).all()
    with pytest.raises(DetectorError, match="msp: needs logits, and none were given"):
        oods.evaluate_activations(**{**given, "detectors": "msp"})


def changed_set(role, key, value):
    given = small()
    (given[role] if role != "near" else given[role]["letters"])[key] = value
    return given


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            changed_set("id_test", "logit", np.zeros((30, 3))),
            "set 'id_test': unknown key 'logit'. Did you mean 'logits'",
        ),
        (changed_set("id_test", "labels", np.arange(29) % 3), "set 'id_test': columns differ in length"),
        (changed_set("id_test", "labels", np.zeros(30)), "set 'id_test': labels must be integers, not float64"),
        (changed_set("id_test", "labels", np.full(30, 3)), "set 'id_test': labels of row 0 is 3, out of range -1..2"),
        (
            changed_set("id_test", "logits", np.zeros(30)),
            "set 'id_test': logits must be of shape [N, columns], not [30]",
        ),
        (changed_set("near", "logits", np.zeros((20, 4))), "set 'letters': logits have 4 columns for 3 classes"),
        (changed_set("near", "logits", np.full((20, 3), np.nan)), "set 'letters': logits are NaN or infinite in 20 of"),
        (
            changed_set("near", "features", np.array([["a"] * 5] * 20)),
            "set 'letters': features must be numbers, not <U1",
        ),
        (changed_set("near", "sample_id", ["a"] * 20), "set 'letters': sample_id 'a' occurs twice"),
        (changed_set("id_test", "sample_id", ["a"]), "set 'id_test': 1 sample_id for 30 rows"),
        (changed_set("id_test", "bias", np.zeros(3)), "set 'id_test': bias without weight"),
        (small(id_test={"labels": np.zeros(3, int)}), "set 'id_test': holds neither logits nor features"),
        (small(id_test=7), "set 'id_test': a int; give Activations"),
        (small(id_test="test.pt"), "set 'id_test': test.pt: arrays are read from .npz and .safetensors files"),
        (small(id_test="none.npz"), "set 'id_test': none.npz: no such file"),
        (small(near={"logits": np.zeros((3, 3))}), "near takes sets by name"),
        (small(head=np.zeros((3, 5))), "head is a pair"),
        (small(head=(np.zeros((4, 5)), None)), "logits have 3 columns for 4 classes"),
        (small(tune="id_only"), "tune='id_only' makes outliers from images"),
        (small(detectors=["odin"]), "odin: needs images and the network, and only activations were given"),
        (small(detectors=["vim"]), "vim: needs the weight and bias of a linear head: pass head=(weight, bias)"),
        (small(protocols=["standrad"]), "unknown protocol 'standrad'"),
    ],
)
def test_mistakes_end_in_one_line(given, words):
    with pytest.raises(OodscopeError) as caught:
        oods.evaluate_activations(**given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pickles_are_never_read(tmp_path):
    np.savez(tmp_path / "evil.npz", logits=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="evil.npz: not readable"):
        oods.evaluate_activations(**small(id_test=tmp_path / "evil.npz"))


def test_two_heads_are_one_too_many():
    given = small()
    given["id_train"]["weight"] = np.ones((3, 5))
    with pytest.raises(DataError, match="one network has one head"):
        oods.evaluate_activations(**given, head=(np.zeros((3, 5)), np.zeros(3)))


# scores alone


def score_frame(count=40):
    rng = np.random.default_rng(1)
    parts = [("test", "id_test", 0.0), ("letters", "near", 1.0), ("noise", "far", 3.0)]
    return pd.concat(
        [
            pd.DataFrame(
                {"set": name, "role": role, "mine": rng.normal(size=count) + shift, "other": rng.random(count)}
            )
            for name, role, shift in parts
        ]
    )


def test_scores_give_the_numbers_of_the_run_they_come_from(tmp_path):
    whole = oods.evaluate_activations(**small(detectors=["msp", "mls"]), protocols=["standard"], seed=5)
    # scores alone do not say how many passes they took
    assert_same_numbers(oods.evaluate_scores(whole.scores.frame, seed=5), whole, unknown=("passes",))
    whole.scores.frame.to_csv(tmp_path / "scores.csv", index=False)
    whole.scores.frame.to_parquet(tmp_path / "scores.parquet")
    for name in ("scores.csv", "scores.parquet"):
        assert_same_numbers(oods.evaluate_scores(tmp_path / name, seed=5), whole, unknown=("passes",))


def test_set_role_and_scores_are_enough():
    result = oods.evaluate_scores(score_frame(), name="speech", model="wav2vec")
    assert result.scores.detectors == ["mine", "other"]
    assert "wav2vec" in result.record.model
    assert not result.measurements.filter(metric="accuracy")
    assert by_place(result)["standard", "auroc", "far", "noise", "mine"].low > 0.9
    assert len(oods.compare(result)) > 0
    assert oods.evaluate_scores(score_frame(), detectors=["mine"]).scores.detectors == ["mine"]


def test_a_label_may_be_empty_where_there_is_none(tmp_path):
    frame = score_frame()
    frame["label"] = np.where(frame["role"] == "id_test", 1.0, np.nan)
    frame["prediction"] = 1
    frame.to_csv(tmp_path / "scores.csv", index=False)
    result = oods.evaluate_scores(tmp_path / "scores.csv")
    assert by_place(result)["standard", "accuracy", "id", "test", ""].value == 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.replace({"role": {"near": "nera"}}), "unknown role 'nera'. Did you mean 'near'"),
        (lambda frame: frame.drop(columns="set"), "there is no column 'set'"),
        (lambda frame: frame.assign(lable=0), "column 'lable' would count as a detector; if it is 'label', call it so"),
        (lambda frame: frame.assign(mine="x"), "column 'mine' holds no numbers"),
        (lambda frame: frame.assign(mine=np.nan), "mine: 120 of 120 scores are NaN or infinite"),
        (lambda frame: frame[["set", "role"]], "there is no column of scores"),
        (lambda frame: frame[frame["role"] != "id_test"], "no row has the role 'id_test'"),
        (lambda frame: frame.assign(set="one"), "set 'one' has rows of two roles"),
        (lambda frame: frame.assign(sample_id="a"), "sample 'a' occurs twice in set 'test'"),
        (lambda frame: frame.assign(label=0.5), "column 'label' must hold integers; it has fractions"),
    ],
)
def test_odd_scores_end_in_one_line(change, words):
    with pytest.raises(OodscopeError) as caught:
        oods.evaluate_scores(change(score_frame()))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_detector_that_is_no_column_is_named():
    with pytest.raises(OodscopeError, match="unknown detector 'mien'. Did you mean 'mine'"):
        oods.evaluate_scores(score_frame(), detectors=["mien"])


# what comes after


@pytest.mark.slow
def test_such_runs_are_saved_compared_submitted_verified_and_built(tmp_path):
    first = oods.evaluate_activations(**small(detectors=["msp", "knn"]), model="one")
    moved = small(detectors=["msp", "knn"])
    moved["near"]["letters"]["logits"] = moved["near"]["letters"]["logits"] * 2
    second = oods.evaluate_activations(**moved, model="two")
    third = oods.evaluate_scores(score_frame())
    for name, result in (("one", first), ("two", second), ("three", third)):
        result.save(tmp_path / name)
        assert oods.Result.load(tmp_path / name).to_dataframe().equals(result.to_dataframe())
        oods.write_report(result, tmp_path / name / "report.html")
        assert "evaluated from" in (tmp_path / name / "report.html").read_text(encoding="utf-8")
    assert len(oods.compare(first)) > 0
    assert {row.first for row in oods.compare(first, second)} == {"msp of one", "knn of one"}
    board = tmp_path / "board"
    for name, detector in (("one", "knn"), ("two", "msp"), ("three", "mine")):
        entry = submit(tmp_path / name, board, id=f"entry-{name}", method=detector, detector=detector)
        assert verify(entry).tier == "recomputed"
    assert len(verify_all(board).standings) == 3
    write_site(verify_all(board), tmp_path / "site")
    assert (tmp_path / "site" / "index.html").is_file()


def test_activations_with_a_prediction_keep_it():
    given = small()
    test = given["id_test"]
    wrong = (test["labels"] + 1) % 3
    given["id_test"] = Activations(logits=test["logits"], labels=test["labels"], prediction=wrong)
    rows = by_place(oods.evaluate_activations(**given))
    assert rows["standard", "accuracy", "id", "id_test", ""].value == 0.0
