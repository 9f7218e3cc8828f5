"""A score table keeps every bit, and names what is wrong with a bad one."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.results.scoretable import COLUMNS, ScoreTable
from tests.examples import examples
from tests.results.factory import SETS, make_scores


def table(scores: dict[str, list[float]], **changes: object) -> ScoreTable:
    n = len(next(iter(scores.values())))
    frame = {
        "sample_id": [f"{row}.png" for row in range(n)],
        "set": "a",
        "role": "id_test",
        "label": 0,
        "own_class": 0,
        "prediction": 0,
        "unit": "",
    }
    described = {name: {"params": {}} for name in scores}
    return ScoreTable(pd.DataFrame(frame | scores | changes), {"detectors": described})


detector_ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(
    lambda name: name not in COLUMNS
)


@pytest.mark.slow
@examples(40)
@given(
    st.dictionaries(
        detector_ids,
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_every_bit_survives_the_file(tmp_path_factory, scores):
    path = tmp_path_factory.mktemp("scores") / "scores.parquet"
    before = table(scores)
    before.save(path)
    after = ScoreTable.load(path)
    assert after.detectors == before.detectors == list(scores)
    for name, values in scores.items():
        assert after.scores(name).tobytes() == np.array(values).tobytes()


def test_a_whole_table_survives_the_file(tmp_path):
    before = make_scores()
    before = ScoreTable(before.frame, before.context.changed(free={"deep": [1, "two", None, 0.1]}))
    before.save(tmp_path / "seed=0" / "scores.parquet")
    after = ScoreTable.load(tmp_path / "seed=0" / "scores.parquet")
    pd.testing.assert_frame_equal(after.frame, before.frame, check_exact=True)
    assert after.context == before.context


def test_selection_by_role_and_set():
    scores = make_scores()
    assert scores.sets("far") == ["photographs", "digits", "textures"]
    assert scores.sets() == list(SETS)
    by_hand = scores.frame.loc[scores.frame["set"] == "digits", "knn"].to_numpy()
    np.testing.assert_array_equal(scores.scores("knn", set="digits"), by_hand)
    assert len(scores.scores("knn", role="far")) == 300 + 400 + 300
    assert len(scores.scores("knn", role="near", set="digits")) == 0
    with pytest.raises(UnknownNameError, match="Did you mean 'knn'"):
        scores.scores("knnn")


def test_the_table_is_not_changed_through_the_frame_it_came_from():
    frame = make_scores().frame.copy()
    held = ScoreTable(frame, make_scores().context)
    frame.loc[0, "knn"] = 99.0
    assert held.scores("knn")[0] != 99.0


def test_one_sample_may_occur_in_several_units_but_not_twice_in_one():
    twice = {"sample_id": ["x", "x"]}
    table({"knn": [0.0, 1.0]}, **twice, unit=["fold 0", "fold 1"])
    with pytest.raises(DataError, match=r"'x' occurs twice in set 'a', unit 'fold 0'"):
        table({"knn": [0.0, 1.0]}, **twice, unit="fold 0")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_named(bad):
    with pytest.raises(DataError, match=r"knn: 2 of 4 .* rows are 1, 3 \(a:1.png, a:3.png\)"):
        table({"msp": [0.0, 1.0, 2.0, 3.0], "knn": [0.0, bad, 2.0, bad]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"role": "id_tset"}, "unknown role 'id_tset'. Did you mean 'id_test'"),
        ({"label": [0.5, 1.0]}, "'label' must hold integers"),
        ({"set": ["a", None]}, "'set' has an empty entry in row 1"),
        ({"stray": [0.0, 1.0]}, "'stray' is not described"),
        ({"knn": [1, 2]}, "'knn' must be floating-point"),
    ],
)
def test_malformed_tables_are_refused(changes, message):
    with pytest.raises(OodscopeError, match=message):
        table({"knn": [0.0, 1.0]}, **changes)


def test_missing_columns_and_descriptions_are_refused():
    scores = make_scores()
    with pytest.raises(DataError, match="no column 'role', 'unit'"):
        ScoreTable(scores.frame.drop(columns=["role", "unit"]), scores.context)
    with pytest.raises(DataError, match="describes detector 'knn'"):
        ScoreTable(scores.frame.drop(columns="knn"), scores.context)
    with pytest.raises(DataError, match="'unit': that is a column"):
        ScoreTable(scores.frame, {"detectors": {"unit": {}}})
    with pytest.raises(DataError, match="not described in the detectors"):
        ScoreTable(scores.frame, {})


def test_a_bad_file_is_refused_in_one_line(tmp_path):
    path = tmp_path / "scores.parquet"
    with pytest.raises(DataError, match=r"scores.parquet: no such file"):
        ScoreTable.load(path)
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(DataError, match="not a readable Parquet file") as caught:
        ScoreTable.load(path)
    assert "\n" not in str(caught.value)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match="not a score table"):
        ScoreTable.load(path)


def test_a_file_is_checked_like_a_new_table(tmp_path):
    path = tmp_path / "scores.parquet"
    make_scores().save(path)
    stored = pq.read_table(path)
    spoilt = stored.set_column(stored.schema.get_field_index("knn"), "knn", pa.array([np.nan] * len(stored)))
    pq.write_table(spoilt, path)
    with pytest.raises(DataError, match=r"scores.parquet: knn: 2900 of 2900 scores are NaN"):
        ScoreTable.load(path)


def test_metadata_that_json_cannot_hold_is_refused_and_leaves_no_file(tmp_path):
    scores = make_scores()
    scores = ScoreTable(scores.frame, scores.context.changed(when=object()))
    with pytest.raises(DataError, match="plain JSON"):
        scores.save(tmp_path / "scores.parquet")
    assert list(tmp_path.iterdir()) == []


def test_names_cost_next_to_nothing_beside_the_scores(tmp_path):
    rng = np.random.default_rng(0)
    n, detectors = 20_000, [f"detector{k}" for k in range(8)]
    scores = {name: rng.normal(size=n) for name in detectors}
    big = table(scores, set=np.repeat(["a long name of a set", "b"], n // 2))
    big.save(tmp_path / "scores.parquet")
    assert (tmp_path / "scores.parquet").stat().st_size < 8 * n * len(detectors)
    assert big.frame["set"].memory_usage() < 2 * n


def test_rows_in_another_order_keep_their_names():
    before = make_scores()
    shuffled = before.frame.sample(frac=1, random_state=0)
    after = ScoreTable(shuffled, before.context).frame
    assert after["sample_id"].tolist() == shuffled["sample_id"].tolist()
    assert after["knn"].tolist() == shuffled["knn"].tolist()
    assert after["set"].tolist() == shuffled["set"].tolist()
