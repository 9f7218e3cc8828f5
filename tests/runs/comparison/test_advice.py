"""The advice on an evaluation: it names what was measured, stops where nothing was, and keeps every doubt."""

import numpy as np
import pandas as pd
import pytest

from oodscope.document.methods import method_name, method_paper
from oodscope.document.number import Number
from oodscope.document.weakness import Weakness
from oodscope.protocols.registry import create_protocol
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.advice import advise
from oodscope.runs.evaluation.chance import at_chance
from oodscope.runs.evaluation.run import Result
from tests.results.factory import make_record

CLASSES = 8
SETS = {"id_test": ("id_test", 160, 0.0), "letters": ("near", 160, 1.5), "noise": ("far", 120, 2.5)}


def evaluated(
    strengths,
    *,
    sets=SETS,
    accuracy=0.9,
    costs=None,
    passes=None,
    tuned=(),
    exposure=None,
    labels=True,
    own=True,
    **kind,
):
    """An evaluation in which each detector reacts to OOD images with its strength."""
    rng = np.random.default_rng(5)
    frames = []
    for name, (role, n, shift) in sets.items():
        classes, odd = np.arange(n) % CLASSES, rng.normal(size=n)
        known = role in ("id_test", "csid")
        frame = {
            "sample_id": [f"{name}/{row}" for row in range(n)],
            "set": name,
            "role": role,
            "label": classes if known else np.full(n, -1),
            "own_class": classes if own else np.full(n, -1),
            "prediction": np.where(np.arange(n) < accuracy * n, classes, (classes + 1) % CLASSES),
            "unit": "",
        }
        for detector, strength in strengths.items():
            frame[detector] = strength * shift + odd + 0.3 * rng.normal(size=n)
        frames.append(pd.DataFrame(frame))
    described = {
        name: {
            "name": name,
            "tuning": "ood_val" if name in tuned else "default",
            "microseconds_per_image": (costs or {}).get(name),
            "extra_forwards": (passes or {}).get(name),
        }
        for name in strengths
    }
    context = {"run": "r", "benchmark": "b", "benchmark_version": "1", "model": "m", "recipe": "", "seed": 0}
    context |= {"populations": {name: "sampled" for name, (role, *_) in sets.items() if role in ("near", "far")}}
    scores = ScoreTable(
        pd.concat(frames, ignore_index=True), {"detectors": described, "exposure": exposure or {}, **context}
    )
    return Result(make_record("r", protocols=["standard"]), create_protocol("standard").measurements(scores), scores)


def test_a_clear_winner_is_taken_with_its_cross_fitted_value():
    advice = advise(evaluated({"knn": 2.0, "msp": 0.3}))
    assert advice.detector == "knn" and advice.lead == "Take knn"
    assert "knn is the best of 2 detectors for other OOD classes" in advice.claim
    assert advice.value.class_low <= advice.value.value <= advice.value.class_high
    assert str(advice).startswith("Take knn. On near OOD, knn is the best")


def test_of_those_that_may_be_best_the_cheapest_is_taken():
    advice = advise(evaluated({"knn": 1.0, "msp": 1.0}, costs={"knn": 50.0, "msp": 1.0}))
    assert "2 of 2 detectors may be best" in advice.claim and advice.detector == "msp"


def test_a_pass_through_the_network_costs_more_than_arithmetic():
    advice = advise(evaluated({"knn": 1.0, "odin": 1.0}, costs={"knn": 50.0, "odin": 1.0}, passes={"odin": 2}))
    assert advice.detector == "knn"


def test_one_detector_is_compared_with_nothing():
    advice = advise(evaluated({"knn": 1.0}))
    assert advice.detector == "knn" and "only detector" in advice.claim and "best of" not in str(advice)


def test_without_a_near_set_the_far_ones_decide():
    far = {name: value for name, value in SETS.items() if value[0] != "near"}
    advice = advise(evaluated({"knn": 1.0, "msp": 0.2}, sets=far))
    assert advice.on == "far OOD" and "On far OOD" in advice.claim and "near" not in str(advice)


def test_without_an_ood_set_nothing_is_advised():
    far = {name: value for name, value in SETS.items() if value[0] == "id_test"}
    shifted = {**far, "fonts": ("csid", 80, 0.3)}
    result = evaluated({"knn": 1.0}, sets=shifted | {"noise": ("far", 5, 1.0)})
    frame = result.scores.frame[result.scores.frame["role"] != "far"]
    assert advise(Result(result.record, Measurements(), ScoreTable(frame, result.scores.context))) is None


def test_a_protocol_that_ranks_no_images_advises_nothing():
    sets = {**SETS, "id_val": ("id_val", 80, 0.0), "id_train": ("id_train", 80, 0.0)}
    result = evaluated({"knn": 1.0}, sets=sets)
    other = Result(make_record("r", protocols=["human_centric"]), result.measurements, result.scores)
    assert advise(other) is None


def test_a_classifier_at_chance_stops_the_advice():
    advice = advise(evaluated({"knn": 1.0, "msp": 0.2}, accuracy=0.13))
    assert advice.detector == "" and advice.lead == "No detector can be recommended" and "at chance" in advice.claim
    (note, *_) = evaluated({"knn": 1.0}, accuracy=0.13).table().notes
    assert note.startswith("The classifier is at chance: ") and "in 8 classes, where guessing gives 12.5 %" in note
    assert not any("chance:" in note for note in evaluated({"knn": 1.0}).table().notes)


def test_detectors_at_chance_stop_the_advice():
    advice = advise(evaluated({"knn": 0.0, "msp": 0.0}))
    assert advice.detector == "" and "better than chance" in advice.claim


def test_what_passes_is_said_at_five_percent_false_alarms():
    result = evaluated({"knn": 1.0, "msp": 0.2})
    advice = advise(result)
    (row,) = result.measurements.filter(
        protocol="standard", detector="knn", metric="fpr95_id_positive", group="near", set="mean"
    )
    assert advice.missed.value == row.value
    assert f"At 5 % false alarms it misses {100 * row.value:.1f} % (" in str(advice)


def test_images_met_in_training_are_named():
    advice = advise(evaluated({"knn": 1.0, "msp": 0.2}, exposure={"letters": "in the training set"}))
    assert advice.value.exposure and "met images of this number before" in str(advice)


def test_a_failed_search_leaves_a_bound():
    stopped = Weakness("largest fall", "digits: AUROC 99.0 →", 0.85, "", "attack", 0.14, ("stopped while falling",))
    mild = Weakness("largest fall", "digits: AUROC 99.0 →", 0.95, "", "attack", 0.04)
    advice = advise(evaluated({"knn": 1.0, "msp": 0.2}), lambda subject: [mild, stopped])
    assert advice.breaks == (stopped,)
    assert "at most 85.00 (stopped while falling)" in str(advice)
    assert "95.00" not in advice.weaknesses


def test_the_detector_that_is_taken_is_the_one_asked_about():
    asked = []
    advise(evaluated({"knn": 1.0, "msp": 0.2}), lambda subject: asked.append(subject) or [])
    assert [(each.detector, each.tuning) for each in asked] == [("knn", "default")]


def test_tracks_are_never_compared():
    advice = advise(evaluated({"knn": 0.5, "react": 3.0}, tuned=("react",)))
    assert advice.detector == "knn" and "react" not in str(advice)
    advice = advise(evaluated({"react": 1.0}, tuned=("react",)))
    assert "tuned on OOD validation data" in str(advice)


def test_without_classes_the_statement_is_about_images():
    advice = advise(evaluated({"knn": 1.0, "msp": 0.2}, own=False))
    assert advice.value.class_interval == "" and advice.value.interval
    assert "other OOD classes" not in str(advice)


@pytest.mark.parametrize(
    ("accuracy", "low", "classes", "chance"),
    [
        (0.067, 0.049, 20, True),  # 1 epoch of the demo
        (0.5, 0.47, 2, True),
        (0.53, 0.51, 2, False),
        (0.08, 0.075, 20, True),
        (0.82, 0.79, 20, False),
        (0.9, None, 1, False),
    ],
)
def test_chance_depends_on_the_number_of_classes(accuracy, low, classes, chance):
    number = Number(accuracy, low, None if low is None else 2 * accuracy - low)
    assert bool(at_chance(number, classes)) == chance


def test_papers_and_their_names_are_known():
    assert method_name("knn(k=10)") == "KNN (k=10)" and method_name("react+msp") == "ReAct + MSP"
    assert method_name("mine") == "mine" and method_paper("mine") == ""
    assert "Sun et al., ICML 2022" in method_paper("knn")
