"""The statistics of a study, recomputed slowly from its rows."""

from itertools import combinations

import numpy as np
import pytest

from oodscope.base.errors import OodscopeError
from oodscope.metrics.comparison.many_sets import signed_rank
from oodscope.metrics.comparison.multiplicity import holm
from oodscope.metrics.comparison.paired import corrected_t
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import study_metric, variance_table
from tests.runs.crossval.crossval_factory import make_table


@pytest.fixture(scope="module")
def table():
    return make_table(metrics=("auroc", "aupr_in"))


@pytest.fixture(scope="module")
def study(table):
    return study_metric(table, "auroc")


def test_truth_and_repetitions_are_means(table, study):
    rows = table.frame[(table.frame["metric"] == "auroc") & (table.frame["kind"] == "hold_out")]
    means = rows.groupby(["detector", "training", "pair"], observed=True)["value"].agg(["mean", "sem"])
    for d, detector in enumerate(study.detectors):
        for c, cell in enumerate(study.cells):
            found = means.loc[(detector, cell.training, cell.pair)]
            assert study.truth[d, c] == pytest.approx(found["mean"])
            assert study.truth_error[d, c] == pytest.approx(found["sem"], abs=1e-9)
    assert study.repetitions.shape == (10, 8, 22)
    assert study.repetitions[3, 2, 5] == pytest.approx(table.folds("auroc")[3, :, 2, 5].mean())
    assert study.estimate is study.truth and study.testable


def slow_pairs(values):
    """Of each pair the p and who has more in most cells."""
    return {
        (a, b): (signed_rank(values[a], values[b]), np.sign(np.median(values[a] - values[b])))
        for a, b in combinations(range(len(values)), 2)
    }


def test_rates_and_directions_are_the_slow_ones(study):
    truth, repetitions = slow_pairs(study.truth), [slow_pairs(values) for values in study.repetitions]
    for alpha in (0.1, 0.05, 0.01):
        hits, errors, same, opposite = [], [], 0, 0
        for pair, (true_p, true_sign) in truth.items():
            verdicts = [sign for p, sign in (found[pair] for found in repetitions) if p <= alpha]
            assert study.counts(alpha)[pair] == len(verdicts)
            (hits if true_p <= alpha else errors).append(len(verdicts))
            if true_p <= alpha:
                same += sum(sign == true_sign for sign in verdicts)
                opposite += sum(sign != true_sign for sign in verdicts)
        rates, ways = study.rates(alpha), study.directions(alpha)
        assert (rates.hits.total, rates.hits.pairs) == (sum(hits), len(hits))
        assert (rates.errors.total, rates.errors.pairs) == (sum(errors), len(errors))
        assert (ways.same, ways.opposite, ways.silent) == (same, opposite, 10 * len(hits) - sum(hits))


def test_a_study_behaves_like_one(study):
    """Most true differences are found, few others are, and never is the loser named."""
    rates, ways = study.rates(0.05), study.directions(0.05)
    assert rates.hits.value > 8 and rates.hits.pairs > 10 and ways.opposite == 0
    assert study.against_truth.shape == (10, 8)
    assert study.against_truth[4, 3] == pytest.approx(signed_rank(study.repetitions[4, 3], study.truth[3]))


def test_other_tests_give_other_counts(table, study):
    literal = study_metric(table, "auroc", test="mannwhitney")
    assert literal.rates(0.05).hits.pairs < study.rates(0.05).hits.pairs
    chosen = study_metric(table, "auroc", auto_parametric=True)
    assert (chosen.truth_tests.p != study.truth_tests.p).any()
    with pytest.raises(OodscopeError, match="unknown test over cells"):
        _ = study_metric(table, "auroc", test="sign").truth_tests


def test_fold_tests_are_nadeau_and_bengios(study):
    first, second = study.detectors[0], study.detectors[4]
    values = study.folds[:, :, [0, 4], 7]
    all_folds = corrected_t(values[..., 0].ravel(), values[..., 1].ravel(), test_to_train=1 / 4)
    assert study.fold_test(first, second, 7) == all_folds
    one = corrected_t(values[2, :, 0], values[2, :, 1], test_to_train=1 / 4)
    assert study.fold_test(first, second, 7, repetition=2) == one
    cell = study.cells[7]
    rows = study.fold_tests
    own = rows[(rows["training"] == cell.training) & (rows["pair"] == cell.pair)]
    assert len(own) == 28 and len(rows) == 28 * 22
    np.testing.assert_allclose(own["p_holm"], holm(own["p"]))
    (row,) = own[(own["first"] == first) & (own["second"] == second)].to_dict("records")
    assert (row["difference"], row["t"], row["p"]) == (all_folds.difference, all_folds.statistic, all_folds.p)
    wins = study.wins()
    assert wins.sum() == (rows["p_holm"] <= 0.05).sum()
    better = rows[(rows["p_holm"] <= 0.05) & (rows["first"] == first) & (rows["second"] == second)]
    assert wins[0, 4] == (better["difference"] > 0).sum() and wins[4, 0] == (better["difference"] < 0).sum()
    with pytest.raises(OodscopeError, match="unknown detector 'eboo'. Did you mean 'ebo'"):
        study.fold_test("eboo", second, 0)


def test_class_intervals_are_wider_than_the_noise_of_the_truth(study):
    low, high = study.class_intervals
    mean = study.repetitions.mean(axis=0)
    assert ((low < mean) & (mean < high)).all()
    assert np.median((high - low) / (4 * study.truth_error)) > 2
    frame = study.to_dataframe()
    row = frame[
        (frame["detector"] == "gen")
        & (frame["pair"] == study.cells[13].pair)
        & (frame["training"] == study.cells[13].training)
    ]
    found = row[["truth", "truth_error", "cross_validated", "class_low", "class_high"]].to_numpy()[0]
    expected = [study.truth[2, 13], study.truth_error[2, 13], mean[2, 13], low[2, 13], high[2, 13]]
    np.testing.assert_array_equal(found, expected)


def test_the_variance_table_has_a_row_for_every_cell_and_detector(table):
    found = variance_table(table, "auroc")
    assert len(found) == 8 * 22 and (found["runs"] == 18).all()
    shares = found[[name for name in found if name.endswith("_share")]]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # the numbers of the factory: classes move a run more than the ID split, and that more than the training
    means = found[["ood_classes", "id_sample", "training_seed"]].mean()
    assert means["ood_classes"] > means["id_sample"] > means["training_seed"] > 0
    plain = CrossValidationTable(table.frame[table.frame["kind"] == "fold"])
    assert variance_table(plain, "auroc").empty


def test_parts_of_a_study_are_enough(table):
    folds = study_metric(CrossValidationTable(table.frame[table.frame["kind"] == "fold"]), "auroc")
    assert not folds.has_truth and folds.has_folds
    np.testing.assert_allclose(folds.estimate, folds.repetitions.mean(axis=0))
    truth = study_metric(CrossValidationTable(table.frame[table.frame["kind"] == "hold_out"]), "auroc")
    assert truth.has_truth and not truth.has_folds
    crossed = CrossValidationTable(table.frame[table.frame["kind"] == "crossed"])
    with pytest.raises(OodscopeError, match="no complete repetition"):
        study_metric(crossed, "auroc")
