"""Point metrics of a ranking against scikit-learn, scipy and hand-made cases."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, rankdata
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.metrics.catalog import METRICS, RANKING
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import least_count, most_count
from tests.examples import examples
from tests.metrics.points import point_metrics

SHARES = (0.95, 0.05, 0.07, 0.29, 0.5, 0.9, 1 / 3, 1.0)  # 0.07 * 100 > 7 and 0.29 * 100 < 29 in float64


def samples(values: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    side = st.lists(values, min_size=1, max_size=60).map(np.array)
    return st.tuples(side, side)


HUGE = 1e300  # scikit-learn sums the scores, so not the largest float
scores = st.one_of(
    samples(st.floats(-HUGE, HUGE)),
    samples(st.floats(-3, 3)),
    samples(st.integers(0, 4).map(float)),
    samples(st.sampled_from([0.0, -0.0, 5e-324, -5e-324, HUGE, -HUGE, 1.0, np.nextafter(1.0, 2.0)])),
)
CASES = {
    "all equal": (np.zeros(7), np.zeros(3)),
    "one per side, equal": (np.array([1.0]), np.array([1.0])),
    "one per side, right": (np.array([0.0]), np.array([1.0])),
    "one per side, wrong": (np.array([1.0]), np.array([0.0])),
    "separated": (np.arange(20.0), np.arange(20.0, 60.0)),
    "reversed": (np.arange(20.0, 60.0), np.arange(20.0)),
    "twenty, so that 19 of 20 is exactly 95 %": (np.arange(20.0) + 0.5, np.arange(20.0)),
    "tie at the 95 % vertex": (np.array([0.0, 1, 1, 1, 2]), np.r_[np.full(3, 1.0), np.full(17, 2.0)]),
}


def labelled(id_scores, ood_scores, positive):
    """Labels and scores as scikit-learn wants them: 1 for the positive class, larger = more positive."""
    joined = np.concatenate([id_scores, ood_scores])
    is_ood = np.r_[np.zeros(id_scores.size), np.ones(ood_scores.size)]
    return (is_ood, joined) if positive == "ood" else (1 - is_ood, -joined)


def on_scores(test):
    for case in CASES.values():
        test = example(case)(test)
    return examples(100)(given(scores)(test))


@on_scores
def test_auroc_is_the_mann_whitney_statistic(sample):
    id_scores, ood_scores = sample
    auroc = Ranking(id_scores, ood_scores).auroc
    u = mannwhitneyu(ood_scores, id_scores, method="asymptotic").statistic
    assert auroc == pytest.approx(u / (id_scores.size * ood_scores.size), abs=1e-9)
    assert auroc == pytest.approx(roc_auc_score(*labelled(id_scores, ood_scores, "ood")), abs=1e-9)
    assert auroc == pytest.approx(roc_auc_score(*labelled(id_scores, ood_scores, "id")), abs=1e-9)


@pytest.mark.parametrize("positive", ["ood", "id"])
@on_scores
def test_aupr_is_scikit_learns(positive, sample):
    labels, values = labelled(*sample, positive)
    ranking = Ranking(*sample)
    assert ranking.aupr(positive) == pytest.approx(average_precision_score(labels, values), abs=1e-9)
    precision, recall, _ = precision_recall_curve(labels, values)
    assert ranking.aupr(positive, trapezoid=True) == pytest.approx(auc(recall, precision), abs=1e-9)


def slow_weighted_precision(labels, values, prevalence):
    """Average precision with weights that make the share of positives ``prevalence``; one threshold at a time."""
    total, recall = 0.0, 0.0
    for threshold in sorted(set(values), reverse=True):
        caught = (values >= threshold) & (labels == 1)
        raised = (values >= threshold) & (labels == 0)
        tpr, fpr = caught.sum() / (labels == 1).sum(), raised.sum() / (labels == 0).sum()
        total += (tpr - recall) * prevalence * tpr / (prevalence * tpr + (1 - prevalence) * fpr)
        recall = tpr
    return total


@pytest.mark.parametrize("positive", ["ood", "id"])
@on_scores
def test_aupr_at_a_prevalence_reweights_the_classes(positive, sample):
    labels, values = labelled(*sample, positive)
    walk = Ranking(*sample).walk(positive)
    for prevalence in (0.5, 0.1, 0.93):
        expected = slow_weighted_precision(labels, values, prevalence)
        assert walk.average_precision_at(prevalence) == pytest.approx(expected, abs=1e-9)
    own = labels.sum() / labels.size
    assert walk.average_precision_at(own) == pytest.approx(float(walk.average_precision()), abs=1e-12)


def test_aupr_at_a_prevalence_does_not_see_set_sizes():
    rng = np.random.default_rng(3)
    id_scores, ood_scores = np.round(rng.normal(size=90), 1), np.round(rng.normal(1, 1, size=90), 1)
    equal = point_metrics(Ranking(id_scores, ood_scores))
    assert equal["aupr_out_prevalence50"] == equal["aupr_out"]
    assert equal["aupr_in_prevalence50"] == equal["aupr_in"]
    assert equal["aupr_out_prevalence10"] < equal["aupr_out"]
    many = point_metrics(Ranking(id_scores, np.tile(ood_scores, 7)))
    for name in ("aupr_out_prevalence50", "aupr_out_prevalence10", "aupr_in_prevalence50"):
        assert many[name] == pytest.approx(equal[name], abs=1e-12)
    assert many["aupr_out"] > equal["aupr_out"] + 0.05


@pytest.mark.parametrize("positive", ["ood", "id"])
@on_scores
def test_rates_are_read_off_the_vertices_of_scikit_learns_roc(positive, sample):
    fpr, tpr, _ = roc_curve(*labelled(*sample, positive), drop_intermediate=False)
    ranking = Ranking(*sample)
    for share in SHARES:
        assert ranking.fpr_at_tpr(share, positive=positive) == fpr[np.argmax(tpr >= share)]
        assert ranking.tpr_at_fpr(share, positive=positive) == tpr[fpr <= share].max()


@on_scores
def test_roc_has_the_vertices_of_scikit_learn(sample):
    expected_fpr, expected_tpr, _ = roc_curve(*labelled(*sample, "ood"), drop_intermediate=False)
    fpr, tpr = Ranking(*sample).roc()
    np.testing.assert_array_equal(fpr, expected_fpr)
    np.testing.assert_array_equal(tpr, expected_tpr)


@on_scores
def test_swapping_the_roles_and_the_sign_swaps_in_and_out(sample):
    id_scores, ood_scores = sample
    here = point_metrics(Ranking(id_scores, ood_scores))
    there = point_metrics(Ranking(-ood_scores, -id_scores))
    assert here["auroc"] == there["auroc"]
    for name, mirror in [
        ("aupr_in", "aupr_out"),
        ("aupr_in_prevalence50", "aupr_out_prevalence50"),
        ("fpr95_id_positive", "fpr95_ood_positive"),
        ("tpr5_id_positive", "tpr5_ood_positive"),
    ]:
        assert here[name] == there[mirror]
        assert here[mirror] == there[name]


@on_scores
def test_negating_the_scores_complements_the_auroc(sample):
    id_scores, ood_scores = sample
    flipped = Ranking(-id_scores, -ood_scores).auroc
    assert Ranking(id_scores, ood_scores).auroc == pytest.approx(1 - flipped, abs=1e-12)


@on_scores
def test_only_the_order_of_the_scores_counts(sample):
    id_scores, ood_scores = sample
    ranks = rankdata(np.concatenate(sample), method="dense") ** 3.0
    transformed = Ranking(ranks[: id_scores.size], ranks[id_scores.size :])
    assert point_metrics(transformed) == point_metrics(Ranking(id_scores, ood_scores))


def test_hand_oracle():
    ranking = Ranking([0.1, 0.2, 0.3, 0.4], [0.25, 0.4, 0.9])
    assert ranking.auroc == 9.5 / 12
    # Catching all three OOD puts the threshold at .25, which flags .3 and .4.
    assert ranking.fpr_at_tpr(positive="ood") == 2 / 4
    # Keeping all four ID puts it at .4, which keeps .25 and the tied .4.
    assert ranking.fpr_at_tpr(positive="id") == 2 / 3
    # No ID may be flagged: only .9 lies above them all.
    assert ranking.tpr_at_fpr(positive="ood") == 1 / 3
    # No OOD may be kept: .1 and .2 lie below them all.
    assert ranking.tpr_at_fpr(positive="id") == 2 / 4
    assert repr(ranking) == "Ranking(n_id=4, n_ood=3, auroc=0.7917)"


def test_the_named_metrics_are_those_of_the_ranking():
    rng = np.random.default_rng(0)
    ranking = Ranking(rng.normal(size=200), rng.normal(1.5, 1, size=100))
    assert point_metrics(ranking) == {
        "auroc": ranking.auroc,
        "aupr_in": ranking.aupr("id"),
        "aupr_out": ranking.aupr("ood"),
        "aupr_in_prevalence50": float(ranking.walk("id").average_precision_at(0.5)),
        "aupr_out_prevalence50": float(ranking.walk("ood").average_precision_at(0.5)),
        "aupr_out_prevalence10": float(ranking.walk("ood").average_precision_at(0.1)),
        "fpr95_ood_positive": ranking.fpr_at_tpr(0.95, positive="ood"),
        "fpr95_id_positive": ranking.fpr_at_tpr(0.95, positive="id"),
        "tpr5_ood_positive": ranking.tpr_at_fpr(0.05, positive="ood"),
        "tpr5_id_positive": ranking.tpr_at_fpr(0.05, positive="id"),
    }


def test_two_definitions_have_two_names():
    """One name meant the rate of a vertex in one place, and a rate between two in another."""
    ranking = Ranking([0.0, 1.0, 1.0, 2.0], [1.0, 1.0, 3.0, 4.0])
    walk = ranking.walk("id")
    found = {name: float(METRICS[name].of(walk)) for name in ("tpr5_id_positive", "tpr5_id_positive_interpolated")}
    assert found["tpr5_id_positive"] == 1 / 4, "no OOD image may be kept"
    assert found["tpr5_id_positive_interpolated"] == pytest.approx(1 / 4 + 2 * (0.05 * 4 / 2) / 4)


def test_the_stated_direction_is_that_of_a_better_detector():
    rng = np.random.default_rng(1)
    id_scores, ood_scores = rng.normal(size=500), rng.normal(1, 1, size=500)
    worse = point_metrics(Ranking(id_scores, ood_scores))
    better = point_metrics(Ranking(id_scores, ood_scores + 1))
    assert {each.name: better[each.name] > worse[each.name] for each in RANKING} == {
        each.name: each.higher_is_better for each in RANKING
    }


@pytest.mark.parametrize("share", SHARES)
def test_counts_at_a_share_agree_with_float_division(share):
    for n in [*range(1, 400), 10_000, 26_032, 999_999, 1_000_000]:
        rates = np.arange(n + 1) / n
        assert least_count(share, n) == np.argmax(rates >= share)
        assert most_count(share, n) == np.flatnonzero(rates <= share)[-1]


def test_a_thinned_roc_keeps_the_ends_and_even_steps():
    rng = np.random.default_rng(2)
    ranking = Ranking(rng.normal(size=3000), rng.normal(1, 1, size=2000))
    full = set(zip(*(axis.tolist() for axis in ranking.roc()), strict=True))
    fpr, tpr = ranking.roc(points=101)
    assert fpr.size <= 101
    assert set(zip(fpr.tolist(), tpr.tolist(), strict=True)) <= full
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert np.diff(fpr + tpr).max() < 2 / 100 + 2 / 2000
    assert ranking.roc(points=10**6)[0].size == len(full)


@pytest.mark.parametrize(
    ("id_scores", "ood_scores", "message"),
    [
        ([0.0, 1.0], [], "OOD scores are empty"),
        ([], [0.0], "ID scores are empty"),
        ([[0.0, 1.0]], [0.0], r"ID scores must be one-dimensional.*\(1, 2\)"),
        (0.5, [0.0], r"ID scores must be one-dimensional.*\(\)"),
        ([0.0], [1.0, np.nan, np.nan], r"OOD scores: 2 of 3 are NaN or infinite; the first is row 1 \(nan\)"),
        ([0.0, 1.0, -np.inf], [1.0], r"ID scores: 1 of 3 are NaN or infinite; the first is row 2 \(-inf\)"),
        (["high"], [1.0], "ID scores must be numbers"),
    ],
)
def test_bad_scores_are_named(id_scores, ood_scores, message):
    with pytest.raises(OodscopeError, match=message) as caught:
        Ranking(id_scores, ood_scores)
    assert "\n" not in str(caught.value)


def test_bad_arguments_are_named():
    ranking = Ranking([0.0, 1.0], [0.5, 2.0])
    with pytest.raises(UnknownNameError, match="Did you mean 'ood'"):
        ranking.aupr("oodd")
    with pytest.raises(OodscopeError, match=r"tpr must lie in \(0, 1\]; it is 95"):
        ranking.fpr_at_tpr(95, positive="ood")
    with pytest.raises(OodscopeError, match=r"tpr must lie in \(0, 1\]; it is 0"):
        ranking.fpr_at_tpr(0.0, positive="ood")
    with pytest.raises(OodscopeError, match=r"fpr must lie in \[0, 1\]; it is nan"):
        ranking.tpr_at_fpr(np.nan, positive="id")
    for share in (0.0, 1.0, 10):
        with pytest.raises(OodscopeError, match="a prevalence lies between 0 and 1"):
            ranking.walk("ood").average_precision_at(share)
    with pytest.raises(OodscopeError, match="at least 2 points"):
        ranking.roc(points=1)
