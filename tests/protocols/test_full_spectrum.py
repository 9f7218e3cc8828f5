"""The full spectrum in each of its forms, against pairs of images counted one by one."""

import numpy as np
import pandas as pd
import pytest

from oodscope.protocols.registry import create_protocol
from oodscope.results.scoretable import ScoreTable

SIZES = {
    "id_test": ("id_test", 40), "blur": ("csid", 90), "fog": ("csid", 15),
    "a": ("near", 30), "b": ("near", 12), "c": ("far", 20),
}  # fmt: skip
SHIFT = {"id_test": 0.0, "blur": 0.8, "fog": 0.3, "a": 1.0, "b": 2.0, "c": 3.0}


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    frames = []
    for name, (role, n) in SIZES.items():
        right = rng.random(n) < {"id_test": 0.9, "blur": 0.4, "fog": 1.1}.get(name, 0)
        known = role in ("id_test", "csid")
        frame = {"sample_id": [f"{name}/{k}" for k in range(n)], "set": name, "role": role, "unit": "all"}
        frame |= {"label": 0 if known else -1, "own_class": 0, "prediction": np.where(right, 0, 1)}
        frames.append(pd.DataFrame(frame | {"d": np.round(rng.normal(SHIFT[name], 1, size=n), 1)}))
    described = {"params": {}, "tuning": "default", "fit_seconds": 0.1, "microseconds_per_image": 1, "peak_mib": None}
    context = {"run": "r", "benchmark": "b", "benchmark_version": "1", "model": "m", "seed": 0}
    return ScoreTable(pd.concat(frames, ignore_index=True), {"detectors": {"d": described}, **context})


@pytest.fixture(scope="module")
def measured(scores):
    return create_protocol("full_spectrum").measurements(scores)


def auroc(scores, below, above):
    """One pair of images at a time."""
    one, two = scores.scores("d", set=below), scores.scores("d", set=above)
    return np.mean([(b > a) + 0.5 * (b == a) for a in one for b in two])


def one(measured, **equals):
    (row,) = measured.filter(**equals)
    assert row.low <= row.value <= row.high
    return row


NEGATIVES = ("id_test", "blur", "fog")


def test_pooled_lets_the_largest_set_weigh_most(scores, measured):
    sizes = [SIZES[name][1] for name in NEGATIVES]
    for name in ("a", "b", "c"):
        expected = np.average([auroc(scores, below, name) for below in NEGATIVES], weights=sizes)
        row = one(measured, protocol="full_spectrum", set=name, metric="auroc")
        assert row.value == pytest.approx(expected, abs=1e-12)
        assert row.n_id == sum(sizes)


def test_balanced_gives_each_negative_set_one_voice(scores, measured):
    values = {}
    for name in ("a", "b", "c"):
        values[name] = np.mean([auroc(scores, below, name) for below in NEGATIVES])
        row = one(measured, protocol="full_spectrum:balanced", set=name, metric="auroc")
        assert row.value == pytest.approx(values[name], abs=1e-12)
        assert (row.n_id, row.n_ood) == (145, SIZES[name][1])
    near = one(measured, protocol="full_spectrum:balanced", group="near", set="mean", metric="auroc")
    assert near.value == pytest.approx((values["a"] + values["b"]) / 2, abs=1e-12)
    assert near.n_ood == 42
    assert near.interval == "delong-logit"


@pytest.mark.parametrize("shifted", ["blur", "fog"])
def test_one_shifted_set_alone(scores, measured, shifted):
    for name in ("a", "b", "c"):
        row = one(measured, protocol=f"full_spectrum:csid={shifted}", set=name, metric="auroc")
        assert row.value == pytest.approx(auroc(scores, shifted, name), abs=1e-12)
        assert row.n_id == SIZES[shifted][1]


def test_the_reaction_to_the_shift_itself(scores, measured):
    rows = {row.set: row for row in measured.filter(protocol="full_spectrum", group="csid", metric="auroc")}
    assert set(rows) == {"blur", "fog", "mean"}
    for name in ("blur", "fog"):
        assert rows[name].value == pytest.approx(auroc(scores, "id_test", name), abs=1e-12)
        assert (rows[name].n_id, rows[name].n_ood) == (40, SIZES[name][1])
    assert rows["mean"].value == pytest.approx((rows["blur"].value + rows["fog"].value) / 2)


def test_accuracy_per_set_pooled_and_balanced(scores, measured):
    frame = scores.frame
    right = (frame["label"] == frame["prediction"])[frame["role"].isin(["id_test", "csid"])]
    each = right.groupby(frame["set"].astype(str)).mean()
    accuracy = {(row.protocol, row.set): row for row in measured.filter(metric="accuracy")}
    assert {key: row.value for key, row in accuracy.items()} == {
        ("full_spectrum", "id_test"): each["id_test"],
        ("full_spectrum", "blur"): each["blur"],
        ("full_spectrum", "fog"): each["fog"],
        ("full_spectrum", "pooled"): right.mean(),
        ("full_spectrum:balanced", "balanced"): pytest.approx(each.mean()),
        ("full_spectrum:csid=blur", "blur"): each["blur"],
        ("full_spectrum:csid=fog", "fog"): each["fog"],
    }
    balanced = accuracy["full_spectrum:balanced", "balanced"]
    own = [accuracy["full_spectrum", name] for name in NEGATIVES]
    assert balanced.low == pytest.approx(balanced.value - np.sqrt(sum((r.value - r.low) ** 2 for r in own)) / 3)
    assert balanced.high == pytest.approx(balanced.value + np.sqrt(sum((r.high - r.value) ** 2 for r in own)) / 3)
    assert balanced.n_id == 145
    alone = accuracy["full_spectrum:csid=blur", "blur"]
    assert (alone.low, alone.high, alone.group) == (
        pytest.approx(own[1].low), pytest.approx(own[1].high), "csid",
    )  # fmt: skip


def test_every_form_has_a_table_and_the_first_stays_readable(measured):
    from oodscope.protocols.arrange import pivot

    pooled = pivot(measured, "full_spectrum")
    assert [c.words for c in pooled.columns] == ["near mean", "a", "b", "far mean", "c", "csid mean", "blur", "fog"]
    assert any("50 means no reaction to the shift" in note for note in pooled.notes)
    for view in ("balanced", "csid=blur", "csid=fog"):
        grid = pivot(measured, f"full_spectrum:{view}")
        assert [c.words for c in grid.columns] == ["near mean", "a", "b", "far mean", "c"]


def test_exposure_is_that_of_the_sets_a_row_was_measured_on(scores):
    known = ScoreTable(scores.frame, {**scores.context.plain(), "exposure": {"fog": "seen_in_training"}})
    flagged = {
        (row.protocol, row.group, row.set)
        for row in create_protocol("full_spectrum").measurements(known).filter(metric="auroc")
        if row.exposure
    }
    ood = {("near", "a"), ("near", "b"), ("near", "mean"), ("far", "c"), ("far", "mean")}
    views = ("full_spectrum", "full_spectrum:balanced", "full_spectrum:csid=fog")
    expected = {(view, *where) for view in views for where in ood}
    assert flagged == expected | {("full_spectrum", "csid", name) for name in ("fog", "mean")}
