"""The table of a study survives its file, refuses what it cannot hold, and its views are its rows."""

import numpy as np
import pandas as pd
import pytest

from oodscope.base.errors import OodscopeError
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.crossval.run import CrossCell, CrossValidationTable
from tests.runs.crossval.crossval_factory import make_table

SMALL = {
    "detectors": ("msp", "knn"),
    "metrics": ("auroc", "aupr_in"),
    "pairs": 2,
    "repetitions": 2,
    "folds": 3,
    "hold_outs": 4,
}


@pytest.fixture(scope="module")
def table():
    return make_table(**SMALL)


def value(frame, **wanted):
    for column, what in wanted.items():
        frame = frame[frame[column] == what]
    (found,) = frame["value"]
    return found


def test_views_are_the_rows(table):
    assert table.cells == [
        CrossCell("plain", "cifar10/cifar100"),
        CrossCell("plain", "cifar10/tiny_imagenet"),
        CrossCell("outlier_exposure", "cifar10/cifar100"),
        CrossCell("outlier_exposure", "cifar10/tiny_imagenet"),
    ]
    assert str(table.cells[2]) == "cifar10/cifar100, outlier exposure"
    assert (table.detectors, table.metrics) == (["msp", "knn"], ["auroc", "aupr_in"])
    folds, hold_outs = table.folds("aupr_in"), table.hold_outs("aupr_in")
    assert folds.shape == (2, 3, 2, 4) and hold_outs.shape == (4, 2, 4)
    told = {"metric": "aupr_in", "detector": "knn", "training": "outlier_exposure", "pair": "cifar10/tiny_imagenet"}
    assert folds[1, 2, 1, 3] == value(table.frame, kind="fold", repetition=1, fold=2, **told)
    assert hold_outs[3, 1, 3] == value(table.frame, kind="hold_out", repetition=3, **told)
    crossed = table.crossed("auroc")
    assert len(crossed) == 3 * 3 * 2 * 2 * 4 and set(crossed["training_seed"]) == {0, 1}


def test_outlier_exposure_comes_last_whatever_came_first(table):
    turned = CrossValidationTable(table.frame[::-1])
    assert [cell.training for cell in turned.cells] == ["plain"] * 2 + ["outlier_exposure"] * 2


def test_it_survives_its_file(table, tmp_path):
    path = table.save(tmp_path / "study")
    assert path.name == "crossval.parquet"
    loaded = CrossValidationTable.load(tmp_path / "study")
    pd.testing.assert_frame_equal(loaded.frame, table.frame)
    assert loaded.metadata == table.metadata
    with pytest.raises(OodscopeError, match="not a score table"):
        ScoreTable.load(path)
    with pytest.raises(OodscopeError, match="no such file"):
        CrossValidationTable.load(tmp_path / "elsewhere")


def test_parts_join_in_any_order(table):
    rows = table.frame.sample(frac=1.0, random_state=0)
    parts = [CrossValidationTable(rows[rows["detector"] == name], {"n": name}) for name in ("knn", "msp")]
    joined = CrossValidationTable.concat(parts)
    assert joined.metadata == {"n": "knn"} and len(joined) == len(table)
    order = [joined.detectors.index(name) for name in table.detectors]
    cells = [joined.cells.index(cell) for cell in table.cells]
    np.testing.assert_array_equal(joined.folds("auroc")[:, :, order][..., cells], table.folds("auroc"))
    with pytest.raises(OodscopeError, match="twice"):
        CrossValidationTable.concat([*parts, parts[0]])
    with pytest.raises(OodscopeError, match="nothing to join"):
        CrossValidationTable.concat([])


def test_incomplete_repetitions_are_left_out_and_named(table):
    frame = table.frame
    lost = (frame["kind"] == "hold_out") & (frame["repetition"] == 2) & (frame["detector"] == "knn")
    part = CrossValidationTable(frame[~lost])
    assert part.incomplete("hold_out") == [2] and part.complete("hold_out") == [0, 1, 3]
    np.testing.assert_array_equal(part.hold_outs("auroc"), table.hold_outs("auroc")[[0, 1, 3]])
    assert part.incomplete("fold") == []
    nothing = CrossValidationTable(frame[frame["kind"] == "crossed"])
    assert nothing.complete("fold") == []
    with pytest.raises(OodscopeError, match="no complete repetition of kind 'fold'"):
        nothing.folds("auroc")


def test_draws_may_be_left_out(table):
    plain = table.frame[table.frame["kind"] != "crossed"].drop(columns=["id_draw", "ood_draw", "training_seed"])
    assert (CrossValidationTable(plain).frame["training_seed"] == 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="pair"), "no column 'pair'"),
        (lambda f: f.assign(extra=1), "'extra' does not belong"),
        (lambda f: f.assign(kind="folds"), "unknown kind 'folds'.*'fold'"),
        (lambda f: f.assign(training="plian"), "unknown training 'plian'.*'plain'"),
        (lambda f: f.assign(value=f["value"].where(f.index != 5)), "1 values are NaN or infinite; the first is .* of "),
        (lambda f: pd.concat([f, f.iloc[[3]]]), "twice"),
        (lambda f: f.assign(fold=0.5), "'fold' must hold integers"),
        (lambda f: f.assign(detector=f["detector"].astype(object).where(f.index != 7)), "empty entry in row 7"),
        (lambda f: f.iloc[:0], "empty"),
        (lambda f: f.assign(metric="../aurocs"), "unknown metric '../aurocs'.*'auroc'"),
    ],
)
def test_misuse_is_named(table, change, message):
    with pytest.raises(OodscopeError, match=message):
        CrossValidationTable(change(table.frame.copy()))


def test_an_unknown_metric_is_named(table):
    with pytest.raises(OodscopeError, match="unknown metric 'aurc'. Did you mean 'auroc'"):
        table.folds("aurc")
