"""How intervals are made is a choice of the run: full, fast or none."""

import numpy as np
import pandas as pd
import pytest

import oodscope as oods
from oodscope.base.errors import UnknownNameError
from oodscope.metrics.catalog import RANKING
from oodscope.metrics.interval import wilson_interval
from oodscope.results.scoretable import ScoreTable
from tests.metrics.resampling.reference import reference_bootstrap


def frame(n=60):
    rng = np.random.default_rng(1)
    parts = []
    for role, name, shift in (("id_train", "train", 0), ("id_val", "val", 0), ("id_test", "test", 0), ("near", "a", 1)):
        label = np.arange(n) % 3 if role.startswith("id") else np.full(n, -1)
        parts.append(
            pd.DataFrame(
                {
                    "set": name,
                    "role": role,
                    "label": label,
                    "prediction": np.where(rng.random(n) < 0.8, np.arange(n) % 3, 0),
                    "one": rng.normal(shift, 1, n).round(1),
                    "two": rng.normal(2 * shift, 1, n).round(1),
                }
            )
        )
    far = parts[-1].assign(set="b", role="far", one=parts[-1]["one"] + 1)
    return pd.concat([*parts, far], ignore_index=True)


@pytest.mark.slow
def test_full_intervals_are_those_of_version_0_1():
    result = oods.evaluate_scores(frame(), seed=5)
    scores = {name: result.scores.scores("one", set=name) for name in ("test", "a", "b")}
    names = [metric.name for metric in RANKING if metric.name != "auroc"]
    slow = reference_bootstrap(scores["test"], {k: scores[k] for k in "ab"}, seed=5, replicates=1000, metrics=names)
    for metric in names:
        for row in result.measurements.filter(detector="one", metric=metric):
            expected = slow.mean_interval(
                metric, [row.set] if row.set != "mean" else {"near": "a", "far": "b"}[row.group]
            )
            assert (row.low, row.high) == pytest.approx((expected.low, expected.high), abs=1e-12, rel=0), row
            assert row.interval == "bootstrap-bca-1000"
    assert {row.interval for row in result.measurements.filter(metric="auroc")} == {"delong-logit"}


@pytest.mark.parametrize("protocol", ["standard", "human_centric"])
def test_fast_and_none_change_intervals_and_no_value(protocol):
    full, fast, none = (
        oods.evaluate_scores(frame(), protocols=[protocol], intervals=each).measurements
        for each in ("full", "fast", "none")
    )
    for metric in {row.metric for row in full}:
        values = [[row.value for row in each.filter(metric=metric)] for each in (full, fast, none)]
        assert values[0] == values[1] == values[2], metric
    assert {row.interval for row in none} == {"none"}
    assert all(row.low is row.high is row.rank_low is row.class_low is None for row in none)
    assert any(row.interval.endswith("-200") for row in fast)
    analytic = [row for row in full if row.interval in ("delong-logit", "wilson")]
    assert analytic
    for row in analytic:
        (same,) = fast.filter(metric=row.metric, set=row.set, group=row.group, detector=row.detector)
        assert (same.low, same.high) == (row.low, row.high)
    accuracy = full.filter(metric="accuracy")[0]
    correct = round(accuracy.value * accuracy.n_id)
    assert (accuracy.low, accuracy.high) == (wilson_interval(correct, 60).low, wilson_interval(correct, 60).high)


def test_the_choice_travels_with_the_scores_and_a_typo_is_named(tmp_path):
    result = oods.evaluate_scores(frame(), intervals="none")
    result.scores.save(tmp_path / "scores.parquet")
    again = ScoreTable.load(tmp_path / "scores.parquet")
    assert again.context.intervals == "none"
    assert result.table().rows
    with pytest.raises(UnknownNameError, match="Did you mean 'fast'"):
        oods.evaluate_scores(frame(), intervals="fasst")
