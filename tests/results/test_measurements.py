"""Measurements survive the way into frames and files unchanged, and refuse what would mislead."""

import io
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodscope.base.errors import DataError, OodscopeError
from oodscope.results.measurement import Measurement, Measurements
from tests.examples import examples
from tests.results.factory import make_result

PLAIN = {
    "run": "r",
    "benchmark": "b",
    "benchmark_version": "1",
    "model": "m",
    "protocol": "standard",
    "set": "digits",
    "group": "far",
    "metric": "auroc",
    "value": 0.5,
}
finite = st.floats(allow_nan=False, allow_infinity=False)
counts = st.none() | st.integers(0, 2**63 - 1)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | finite | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
measurements = st.builds(
    Measurement,
    run=words,
    benchmark=words,
    benchmark_version=words,
    model=words,
    recipe=words,
    detector=words,
    params=st.dictionaries(words, json_values, max_size=3),
    tuning=st.sampled_from(["default", "id_only", "ood_val"]),
    protocol=words,
    set=words,
    group=words,
    metric=words,
    value=finite,
    low=st.none() | finite,
    high=st.none() | finite,
    interval=words,
    level=st.none() | finite,
    class_low=st.none() | finite,
    class_high=st.none() | finite,
    rank_low=counts,
    rank_high=counts,
    n_id=counts,
    n_ood=counts,
    seed=counts,
    fit_seconds=st.none() | finite,
    microseconds_per_image=st.none() | finite,
    peak_mib=st.none() | finite,
)


@examples(25)
@given(st.lists(measurements, max_size=4))
def test_frames_and_parquet_give_back_equal_measurements(rows):
    before = Measurements(rows)
    buffer = io.BytesIO()
    before.to_dataframe().to_parquet(buffer)
    assert Measurements.from_dataframe(before.to_dataframe()) == before
    assert Measurements.from_dataframe(pd.read_parquet(buffer)) == before


def test_csv_holds_every_digit():
    frame = make_result().to_dataframe()
    again = pd.read_csv(io.StringIO(frame.to_csv(index=False)), dtype=str)
    for column in ("value", "low", "high"):
        np.testing.assert_array_equal(again[column].map(float).to_numpy(), frame[column].to_numpy())


def test_numpy_numbers_become_plain_and_nan_becomes_missing():
    row = Measurement(**PLAIN | {"value": np.float32(0.25), "low": math.nan, "n_id": np.int64(3)}, params={"k": (1,)})
    assert (type(row.value), row.value, row.low, type(row.n_id)) == (float, 0.25, None, int)
    assert row.params == {"k": [1]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_refused(value):
    with pytest.raises(DataError, match=r"auroc of knn on digits \(standard\).*finite"):
        Measurement(**PLAIN | {"value": value, "detector": "knn"})


@pytest.mark.parametrize("params", [{"k": {1}}, {"k": math.nan}])
def test_parameters_that_json_cannot_hold_are_refused(params):
    with pytest.raises(DataError, match="params must be plain JSON"):
        Measurement(**PLAIN, params=params)


def test_an_unknown_track_is_refused():
    with pytest.raises(DataError, match="'ood_test'"):
        Measurement(**PLAIN, tuning="ood_test")


def test_filter_takes_all_conditions_together():
    every = make_result().measurements
    found = every.filter(metric="auroc", detector="knn", protocol="standard", group="far")
    assert [row.set for row in found] == ["photographs", "digits", "textures", "mean"]
    assert len(every.filter(detector="knn")) + len(every.filter(detector="")) < len(every)


def test_a_misspelt_field_is_an_error_that_helps():
    with pytest.raises(OodscopeError, match=r"'metrics'\. Did you mean 'metric'"):
        make_result().measurements.filter(metrics="auroc")


def test_measurements_do_not_change():
    one, two = Measurements.from_rows([PLAIN]), Measurements.from_rows([PLAIN | {"set": "svhn"}])
    both = one + two
    assert ([row.set for row in both], len(one), len(two)) == (["digits", "svhn"], 1, 1)
    assert both[1:] == two and both[1] == two[0]
    with pytest.raises(FrozenInstanceError):
        one[0].value = 0.9


def test_a_frame_of_an_older_version_lacks_what_was_not_measured():
    now = make_result().to_dataframe()
    old = now.drop(columns=["class_low", "class_high", "rank_low", "rank_high", "peak_mib"])
    rows = Measurements.from_dataframe(old)
    assert [row.value for row in rows] == now["value"].tolist()
    assert {(row.class_low, row.rank_high, row.peak_mib) for row in rows} == {(None, None, None)}
    some = Measurements.from_dataframe(now.drop(columns=["class_low"]))
    assert [row.peak_mib for row in some] == [row.peak_mib for row in make_result().measurements]


def test_a_foreign_frame_is_refused():
    with pytest.raises(DataError, match="colour"):
        Measurements.from_dataframe(make_result().to_dataframe().drop(columns="class_low").assign(colour=1))
    with pytest.raises(DataError, match="value"):
        Measurements.from_dataframe(make_result().to_dataframe().drop(columns="value"))
