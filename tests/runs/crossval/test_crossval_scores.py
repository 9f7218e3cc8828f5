"""A cross-validation keeps its scores: every number comes from them, also one that was thought of later."""

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.metric import Metric
from oodscope.runs.crossval.draws import Draw
from oodscope.runs.crossval.engine import cross_validate
from oodscope.runs.crossval.plan import CrossValidationPlan
from oodscope.runs.crossval.protocol import CrossValidated
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.scores import stored_scores, with_metrics
from tests.runs.crossval.crossval_world import RecordingTrainer, pairs

PLAN = CrossValidationPlan(folds=3, repetitions=1, hold_outs=2, variance_design=(2, 1, 2), detectors=("msp", "ebo"))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    return cross_validate(PLAN, pairs(), RecordingTrainer(), folder=folder)


def values(table):
    """Every value of a table by cell, draw, detector and metric."""
    return {
        (row.training, row.pair, Draw(row.kind, row.repetition, row.fold).name, row.detector, row.metric): row.value
        for row in table.frame.itertuples()
    }


def test_the_table_is_what_the_stored_scores_give(study):
    measured = {
        (cell.training, cell.pair, row.set, row.detector, row.metric): row.value
        for cell, scores in stored_scores(study.folder).items()
        for row in CrossValidated().measure(scores)
    }
    assert measured == values(study.draws)


def test_every_draw_has_its_three_sets(study):
    scores = study.cell_scores()
    assert set(scores) == set(study.draws.cells)
    for cell, table in scores.items():
        known, foreign = cell.pair.split("/")
        frame = table.frame
        assert len(frame["unit"].unique()) == 3 + 2 + 4
        assert set(zip(frame["set"], frame["role"])) == {(known, "id_val"), (known, "id_test"), (foreign, "near")}
        assert (frame.loc[frame["role"] == "near", "label"] == -1).all()
        assert (frame["own_class"] >= 0).all()
        assert frame["prediction"].between(0, 2).all()


def test_a_metric_of_later_needs_no_training(study, monkeypatch):
    def mean_gap(columns, weights):
        ood = columns["is_ood"]
        return float(columns["score"][ood].mean() - columns["score"][~ood].mean())

    metric = Metric("mean_gap", "mean gap", True, "difference of the mean scores", unit="number", value=mean_gap)
    monkeypatch.setattr(METRICS, "_registered", {})
    METRICS.register(metric.name, metric)
    monkeypatch.setattr(RecordingTrainer, "train", lambda *_: pytest.fail("a network was trained"))
    monkeypatch.setattr(RecordingTrainer, "open", lambda *_: pytest.fail("images were read"))
    table = study.with_metrics("mean_gap", "fpr95_id_positive")
    assert table.metrics == [*study.draws.metrics, "mean_gap", "fpr95_id_positive"]
    assert table.folds("mean_gap").shape == table.folds("auroc").shape
    assert np.array_equal(table.folds("auroc"), study.draws.folds("auroc"))
    again = CrossValidationTable.load(table.save(study.folder / "more").parent)
    assert again.frame.equals(table.frame)
    (cell, scores), *_ = study.cell_scores().items()
    frame = scores.frame[scores.frame["unit"] == "fold-000-1"]
    gap = frame.loc[frame["role"] == "near", "ebo"].mean() - frame.loc[frame["role"] == "id_test", "ebo"].mean()
    assert values(table)[cell.training, cell.pair, "fold-000-1", "ebo", "mean_gap"] == pytest.approx(gap, abs=1e-12)


def test_lost_and_rotten_scores_are_made_again(tmp_path):
    plan = PLAN.model_copy(update={"variance_design": None})
    first = cross_validate(plan, pairs(), RecordingTrainer(), folder=tmp_path)
    expected = {cell: table.frame for cell, table in first.cell_scores().items()}
    paths = sorted((tmp_path / "scores").iterdir())
    paths[0].unlink()
    paths[1].write_bytes(paths[1].read_bytes()[:-9])
    trainer = RecordingTrainer()
    second = cross_validate(plan, pairs(), trainer, folder=tmp_path)
    assert trainer.calls("train")
    assert second.draws.frame.equals(first.draws.frame)
    assert all(table.frame.equals(expected[cell]) for cell, table in second.cell_scores().items())


def test_what_cannot_be_measured_from_folds_is_named(study, tmp_path):
    with pytest.raises(DataError, match="accuracy is not measured from the scores of a fold"):
        study.with_metrics("accuracy")
    with pytest.raises(DataError, match="no scores are stored here"):
        stored_scores(tmp_path, study.draws)
    assert with_metrics(study.draws, study.cell_scores(), ["auroc"]).frame.equals(study.draws.frame)
