"""Comparisons of stored scores: the right images, the right family, a sentence that is true."""

import io
import json
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import oodscope as oods
from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.metrics.comparison.multiplicity import holm
from oodscope.metrics.comparison.paired import paired_delong
from oodscope.metrics.ranking.clusters import sampling_noise
from oodscope.metrics.ranking.placements import place
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.protocols.ranking import measure_separation, standard_errors
from oodscope.protocols.separation import separate
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.comparison import Comparison, p_value, points
from oodscope.runs.evaluation.run import Result
from tests.results.factory import make_record, make_result, make_scores

pytestmark = pytest.mark.slow

NEAR, FAR = ["held_out"], ["photographs", "digits", "textures"]


def two_runs(shuffled=True, **changes):
    """The factory's run, and another model's scores of the same images in another order."""
    other = make_scores(1).frame
    mine = make_scores(0).frame
    keep = ["sample_id", "set", "role", "label", "own_class", "prediction", "unit"]
    frame = pd.concat([mine[keep], other.drop(columns=keep)], axis=1)
    if shuffled:
        frame = frame.sample(frac=1, random_state=0)
    scores = ScoreTable(frame, make_scores(1).context)
    record = make_record("other", **{"model": "small_vit", **changes})
    return make_result(), Result(record, make_result("other").measurements, scores)


def rows_of(found, statement="images", **equals):
    return [r for r in found if r.statement == statement and all(getattr(r, k) == v for k, v in equals.items())]


def test_all_pairs_of_one_run_by_paired_delong():
    found = oods.compare(make_result(), detectors=["knn", "msp", "vim"])
    assert len(found) == 2 * 3 * 6 and {row.statement for row in found} == {"images", "classes"}
    scores = make_result().scores
    near = rows_of(found, group="near", set="mean")
    assert [(row.first, row.second) for row in near] == [("knn", "msp"), ("knn", "vim"), ("msp", "vim")]
    placed = {
        name: place(scores.scores(name, set="id_test"), {s: scores.scores(name, set=s) for s in NEAR})
        for name in ("knn", "msp", "vim")
    }
    tests = [paired_delong(placed[row.first], placed[row.second]) for row in near]
    for row, test, p in zip(near, tests, holm([test.p for test in tests])):
        assert (row.difference, row.low, row.high) == pytest.approx((test.difference, test.low, test.high))
        assert (row.p, row.detectable, row.comparisons) == pytest.approx((test.p, test.detectable, 3))
        assert row.family == "max-T" and row.p <= row.p_adjusted <= p + 0.01
        assert (row.n_id, row.n_ood, row.n_classes) == (700, 500, 0)
        assert row.first_value == pytest.approx(placed[row.first].mean)
    (far,) = rows_of(found, group="far", set="mean", first="knn", second="msp")
    means = [
        np.mean([Ranking(scores.scores(n, set="id_test"), scores.scores(n, set=s)).auroc for s in FAR])
        for n in ("knn", "msp")
    ]
    assert (far.first_value, far.second_value) == pytest.approx(tuple(means))
    assert far.n_ood == 1000


def test_the_second_statement_is_of_other_classes():
    found = oods.compare(make_result(), detectors=["knn", "msp"])
    (mine,), (near,) = rows_of(found, group="near", set="mean"), rows_of(found, "classes", group="near", set="mean")
    scores = make_result().scores
    frame = scores.frame[scores.frame["set"] == "held_out"]
    by_class = [Ranking(scores.scores("knn", set="id_test"), own["knn"]).auroc for _, own in frame.groupby("own_class")]
    assert near.first_value == pytest.approx(np.mean(by_class)) and near.first_value != mine.first_value
    assert (near.n_classes, near.n_ood) == (10, 500)
    assert "for other OOD classes, this network (10 classes, 1,200 images)" in str(near)
    assert "for other images of these classes, this network (1,200 images)" in str(mine)
    assert all("other OOD classes" in sentence for sentence in found.sentences()), "the wider statement leads"


def test_a_set_without_enough_classes_says_so():
    result = make_result()
    frame = result.scores.frame.copy()
    frame.loc[frame["set"] == "held_out", "own_class"] %= 4
    few = Result(result.record, result.measurements, ScoreTable(frame, result.scores.context))
    found = oods.compare(few, detectors=["knn", "msp"])
    assert not rows_of(found, "classes", group="near")
    reason = "Of other OOD classes nothing is said on near mean: held_out has 3.7 effective classes; 5 are needed."
    assert reason in found.notes and reason in found.table().notes
    assert "other images of these classes" in found.sentences()[0]


def test_the_negatives_are_those_of_the_protocol():
    wide = oods.compare(make_result(), detectors=["knn", "msp"], protocol="full_spectrum")
    assert {row.n_id for row in wide} == {700 + 350 + 350}
    assert {row.protocol for row in wide} == {"full_spectrum"}


def test_other_metrics_by_paired_bootstrap():
    found = oods.compare(make_result(), metric="fpr95_id_positive")
    (near,) = rows_of(found, group="near", set="mean", first="knn", second="mds")
    measured = {
        m.detector: m.value
        for m in make_result().measurements.filter(
            protocol="standard", metric="fpr95_id_positive", group="near", set="mean"
        )
    }
    assert (near.first_value, near.second_value) == pytest.approx((measured["knn"], measured["mds"]))
    # eight detectors, 28 pairs: 1,000 replicates without studentising could not go below p = 0.056
    assert near.comparisons == 28 and near.difference < 0 and near.p_adjusted < 0.01 and near.distinguishable
    assert str(near).startswith("On near OOD, knn beats mds by ")
    assert "points of FPR95 (ID positive)" in str(near)
    (wider,) = rows_of(found, "classes", group="near", set="mean", first="knn", second="mds")
    # the classes of this set hardly differ, so the wider statement is as sure as the other, and no surer
    assert wider.distinguishable and wider.detectable == pytest.approx(near.detectable, rel=0.1)


@pytest.mark.parametrize("metric", ["augrc", "aurc", "der95_val_correct", "frr95_val_correct", "far99_val_correct"])
def test_decisions_to_reject_are_compared(metric):
    scores = make_scores()
    held = scores.frame[scores.frame["set"] == "id_test"].head(300).assign(set="id_val", role="id_val")
    held = held.assign(sample_id=[f"val{n}" for n in range(300)])
    whole = ScoreTable(pd.concat([scores.frame, held]), scores.context)
    result = Result(make_record(protocols=["standard", "human_centric"]), make_result().measurements, whole)
    found = oods.compare(result, detectors=["knn", "mds", "msp"], metric=metric)
    assert {row.protocol for row in found} == {"human_centric"}
    groups = {"all", "label_shift", "input_shift"}
    assert {row.group for row in found} == groups - ({"all", "label_shift"} if metric.startswith("frr") else set())
    if metric.startswith("frr"):
        return
    (row,) = rows_of(found, group="label_shift", set="held_out", first="knn", second="mds")
    column = whole.scores("knn", set="held_out")
    if metric.startswith("far"):
        known = whole.frame[(whole.frame["role"] == "id_val") & whole.correct()]["knn"]
        gamma = ThresholdSample(known.to_numpy(), "").threshold(0.99).value
        assert row.first_value == pytest.approx(np.mean(column < gamma))
    assert 0 < row.p_adjusted <= 1 and row.low < row.difference < row.high
    assert rows_of(found, "classes", group="label_shift", set="mean")
    assert oods.compare(result, detectors=["knn", "msp"], metric=metric).sentences()


def test_two_runs_are_matched_image_by_image():
    first, second = two_runs()
    found = oods.compare(first, second, detectors=["knn"])
    straight = oods.compare(*two_runs(shuffled=False), detectors=["knn"])
    assert list(found) == list(straight)
    assert {(row.first, row.second) for row in found} == {("knn of small_cnn", "knn of small_vit")}
    everything = oods.compare(first, second)
    assert len(everything) == 2 * 8 * 6
    assert len(rows_of(everything, set="mean", group="near")) == 8
    alike = oods.compare(first, two_runs(model="small_cnn")[1], detectors=["knn"])
    assert alike[0].first == "knn of glyphs-small_cnn-0"


def test_two_runs_are_compared_on_what_both_measured():
    """One of them scored more sets and images, as a run with thresholds does."""
    first, second = two_runs()
    frame = second.scores.frame
    more = frame[frame["set"] == "id_test"].head(50).assign(set="id_val", role="id_val")
    fewer = frame[(frame["set"] != "digits") & (frame["sample_id"] != "held_out/00003.png")]
    wider = ScoreTable(pd.concat([fewer, more.assign(sample_id=[f"v{n}" for n in range(50)])]), second.scores.context)
    found = oods.compare(first, Result(second.record, second.measurements, wider), detectors=["knn"])
    assert {row.set for row in found} == {"mean", "held_out", "photographs", "textures"}
    assert rows_of(found, set="held_out")[0].n_ood == 499


def test_seeds_add_the_statement_about_other_networks():
    first, second = two_runs(model="small_cnn", model_fingerprint="cd" * 32)
    found = oods.compare(first, detectors=["knn", "mds", "msp"], seeds=[second])
    near = rows_of(found, "networks", group="near", set="mean")
    assert [row.n_networks for row in near] == [2, 2, 2]
    assert "for other networks of this recipe (10 classes, 1,200 images, 2 networks)" in found.sentences()[0]
    for row, narrow in zip(near, rows_of(found, "classes", group="near", set="mean")):
        assert row.family == "holm" and row.first_value != narrow.first_value


def row(**changes):
    plain = {"protocol": "standard", "metric": "auroc", "group": "near", "set": "mean", "first": "knn"}
    plain |= {"second": "msp", "first_value": 0.9, "second_value": 0.876, "difference": 0.024, "low": 0.019}
    plain |= {"high": 0.029, "level": 0.95, "p": 1e-9, "p_adjusted": 6e-9, "comparisons": 6, "detectable": 0.008}
    plain |= {"family": "max-T", "n_id": 4000, "n_ood": 5000, "statement": "classes", "n_classes": 25}
    return Comparison(**plain | changes)


def test_sentences_to_quote():
    beats = (
        "On near OOD, knn beats msp by 2.4 points of AUROC "
        "(95 % interval of the pair alone 1.9 to 2.9, p < 0.001, max-T over 6 comparisons) "
        "for other OOD classes, this network (25 classes, 9,000 images)."
    )
    assert str(row()) == beats
    turned = row(first="msp", second="knn", difference=-0.024, low=-0.029, high=-0.019)
    assert str(turned) == beats
    lower = row(metric="fpr95_id_positive", first="msp", second="knn")
    assert str(lower) == beats.replace("AUROC", "FPR95 (ID positive)")
    unsure = row(difference=-0.003, low=-0.008, high=0.002, p=0.21, p_adjusted=0.21, comparisons=1, set="svhn")
    assert str(unsure) == (
        "On svhn, msp and knn are statistically indistinguishable: they differ by 0.3 points of AUROC (95 % interval "
        "-0.2 to 0.8, p = 0.210) for other OOD classes, this network (25 classes, 9,000 images); differences below 0.8 "
        "points are invisible."
    )
    assert not row(p_adjusted=0.05).distinguishable
    assert (points(0.0004), points(-0.00001), p_value(0.001)) == ("0.04", "0.00", "p = 0.001")


def test_sentences_are_of_the_leader_against_its_closest_rivals():
    found = oods.compare(make_result())
    near = [s for s in found.sentences() if s.startswith("On near OOD")]
    assert len(near) == 3
    values = {
        m.detector: m.value
        for m in make_result().measurements.filter(protocol="standard", metric="auroc", group="near", set="mean")
    }
    best = max(values, key=values.get)
    closest = sorted((name for name in values if name != best), key=lambda name: values[best] - values[name])[:3]
    for sentence, rival in zip(near, closest):
        assert best in sentence and rival in sentence


def test_it_prints_and_serialises():
    found = oods.compare(make_result(), detectors=["knn", "msp"])
    console = Console(width=140, file=io.StringIO())
    console.print(found)
    text = console.file.getvalue()
    assert "knn beats msp" in text and "p adjusted" in text and "max-T" in text
    content = json.loads(found.to_json())
    assert [c["set"] for c in content["comparisons"] if c["statement"] == "classes"] == [
        "mean",
        "held_out",
        "mean",
        "photographs",
        "digits",
        "textures",
    ]
    assert content["sentences"] == found.sentences()
    shown = [row.labels[2].text for row in found.table().rows if row.labels[3].text == "images"]
    assert shown == ["held_out", "far mean", "photographs", "digits", "textures"], "a single set is not shown twice"
    assert found.to_dataframe()["difference"].tolist() == [r.difference for r in found]
    assert list(found[1:3]) == list(found)[1:3]


def test_what_cannot_be_compared_is_refused():
    first, second = two_runs()
    frame = second.scores.frame
    without = ScoreTable(frame[frame["role"] != "id_test"], second.scores.context)
    lost = Result(second.record, second.measurements, without)
    for call, error, message in [
        (lambda: oods.compare(first, detectors=["knn"]), DataError, "two detectors, or two runs"),
        (lambda: oods.compare(first, detectors=["knn", "mps"]), UnknownNameError, "Did you mean 'msp'"),
        (lambda: oods.compare(first, metric="aurocs"), UnknownNameError, "Did you mean 'auroc'"),
        (lambda: oods.compare(first, protocol="standrad"), UnknownNameError, "Did you mean 'standard'"),
        (lambda: oods.compare(first, two_runs(benchmark="b")[1]), DataError, "different benchmarks, glyphs and b"),
        (lambda: oods.compare(first, lost), DataError, "share no images of id_test and of an OOD set"),
        (lambda: oods.compare(first, second, seeds=[second]), DataError, "a second run or seeds, not both"),
        (lambda: oods.compare(first, seeds=[first]), DataError, "are of one network"),
        (lambda: oods.compare(first, first), DataError, "to compare its detectors, give it once"),
        (lambda: oods.compare(first, detectors=["knn", "msp"], level=95), OodscopeError, "it is 95"),
    ]:
        with pytest.raises(error, match=message):
            call()


@cache
def measured():
    scores = make_scores()
    context = {"run": "r", "benchmark": "glyphs", "benchmark_version": "1", "model": "m", "seed": 0}
    scores = ScoreTable(scores.frame, scores.context.changed(**context))
    return scores, measure_separation(scores, "standard", ("id_test",))


def test_measurements_carry_class_intervals_and_ranks():
    scores, rows = measured()
    knn = rows.filter(detector="knn", metric="auroc")
    for row in knn:
        assert row.class_low < row.value < row.class_high
        # equal weights of classes against equal weights of images
        assert row.class_value != row.value and abs(row.class_value - row.value) < 0.01
    assert {row.class_low for row in rows if row.metric != "auroc"} == {None}
    assert {row.rank_low for row in rows if row.metric != "auroc" or row.set != "mean"} == {None}
    near = {row.detector: row for row in rows.filter(metric="auroc", group="near", set="mean")}
    assert (near["react"].tuning, near["react"].rank_low) == ("ood_val", None), "alone in its track"
    rivals = sorted((row for row in near.values() if row.tuning == "default"), key=lambda row: -row.value)
    for place_, row in enumerate(rivals, 1):
        assert row.rank_low <= place_ <= row.rank_high <= 7
    assert (near["mds"].rank_low, near["mds"].rank_high) == (7, 7)
    placed = {row.detector: separate(scores, ("id_test",))[row.detector].placements(NEAR) for row in rivals}
    pairs = list(combinations(placed, 2))
    tests = [paired_delong(placed[a], placed[b]) for a, b in pairs]
    apart = {frozenset(pair) for pair, p in zip(pairs, holm([test.p for test in tests])) if p < 0.05}
    assert 0 < len(apart) < len(pairs)
    for row in rivals:
        met = [other for other in rivals if frozenset((row.detector, other.detector)) in apart]
        # max-T finds at least nearly all that Holm finds, and more where detectors agree
        assert row.rank_low >= 1 + sum(other.value > row.value for other in met)
        assert row.rank_high <= 7 - sum(other.value < row.value for other in met)
        assert row.may_be_best in (0, 1) and row.may_be_best <= (row.rank_low == 1)
        assert row.class_rank_low <= row.class_rank_high <= 7
    assert rivals[0].may_be_best == 1


def test_sets_without_classes_count_by_their_images():
    scores, _ = measured()
    frame = scores.frame.copy()
    frame.loc[frame["set"] == "digits", "own_class"] = -1
    rows = measure_separation(ScoreTable(frame, scores.context), "standard", ("id_test",))
    by_set = {row.set: row.class_low for row in rows.filter(detector="knn", metric="auroc", group="far")}
    assert by_set["digits"] is None and by_set["mean"] is not None and by_set["textures"] is not None
    alone = ScoreTable(frame[frame["set"].isin(["id_test", "digits"])], scores.context)
    assert {row.class_value for row in measure_separation(alone, "standard", ("id_test",))} == {None}
    frame.loc[frame["set"] == "textures", "own_class"] %= 4
    rows = measure_separation(ScoreTable(frame, scores.context), "standard", ("id_test",))
    few = {row.set: row.class_value for row in rows.filter(detector="knn", metric="auroc", group="far")}
    assert few["textures"] is few["mean"] is None and few["photographs"] is not None, "4 classes are too few"


def test_cards_say_which_classes_are_drawn_anew():
    scores, plain = measured()
    said = {"held_out": "exhaustive", "digits": "exhaustive", "textures": "none"}
    rows = measure_separation(
        ScoreTable(scores.frame, scores.context.changed(populations=said)), "standard", ("id_test",)
    )
    by_set = {row.set: row.class_value for row in rows.filter(detector="knn", metric="auroc", group="far")}
    assert by_set["digits"] is by_set["textures"] is None and by_set["mean"] is not None
    assert {row.class_rank_low for row in rows.filter(group="near")} == {None}
    assert [row.value for row in rows] == [row.value for row in plain], "no published number depends on it"


def test_single_images_are_measured_without_ranks():
    scores, _ = measured()
    frame = scores.frame
    few = pd.concat([frame[frame["set"] == name].head(1) for name in ("id_test", "held_out")])
    rows = measure_separation(ScoreTable(few, scores.context), "standard", ("id_test",))
    assert {row.rank_low for row in rows} == {row.class_low for row in rows} == {None}


def test_standard_errors_by_class():
    scores, _ = measured()
    frame = standard_errors(scores).set_index(["detector", "set"])
    separation = separate(scores, ("id_test",))["knn"]
    line = frame.loc["knn", "digits"]
    placed = separation.placements(["digits"])
    assert line["image"] == pytest.approx(sampling_noise(placed).error)
    classes = {"digits": separation.ood_classes["digits"]}
    assert line["ood_class"] == pytest.approx(sampling_noise(placed, ood_classes=classes).error)
    both = sampling_noise(placed, ood_classes=classes, id_classes=separation.id_classes).error
    assert line["both_classes"] == pytest.approx(both)
    assert line["ratio"] == line["ood_class"] / line["image"]
    assert (line["classes"], len(frame)) == (10, 8 * 4)
