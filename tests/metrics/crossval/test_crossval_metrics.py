"""The metrics of cross-validation against scikit-learn, slow counts and the hand-made case of the protocols."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from oodscope.base.errors import OodscopeError
from oodscope.metrics.catalog import CROSSVAL
from oodscope.metrics.crossval.metrics import crossval_metrics
from oodscope.metrics.ranking.ranking import Ranking
from tests.examples import examples

side = st.one_of(
    st.lists(st.integers(0, 5).map(float), min_size=1, max_size=40),
    st.lists(st.floats(-3, 3, width=16), min_size=1, max_size=40),
).map(np.array)


def slow(id_test, ood_test, id_val):
    """From the definitions, with scikit-learn's curves and one threshold at a time."""
    scores = np.concatenate([id_test, ood_test])
    is_ood = np.r_[np.zeros(id_test.size), np.ones(ood_test.size)]
    found = {"auroc": roc_auc_score(is_ood, scores)}
    for name, labels, values in (("id", 1 - is_ood, -scores), ("ood", is_ood, scores)):
        fpr, tpr, _ = roc_curve(labels, values, drop_intermediate=False)
        found[f"tpr5_{name}_positive_interpolated"] = np.interp(0.05, fpr, tpr)
        f1 = []
        for threshold in set(values.tolist()):
            called = values >= threshold
            true = (called & (labels == 1)).sum()
            f1.append(2 * true / (called.sum() + (labels == 1).sum()))
        found[f"max_f1_{name}_positive"] = max(f1)
        found["aupr_in" if name == "id" else "aupr_out"] = average_precision_score(labels, values)
        if name == "id":
            precision, recall, _ = precision_recall_curve(labels, values)
            found["aupr_in_trapezoid"] = auc(recall, precision)
    # the confidences of the paper: small is OOD, and the tenth percentile of validation is the limit
    limit = np.percentile(-id_val, 10)
    found["accuracy_at_90_id_kept"] = np.mean(np.r_[-id_test >= limit, -ood_test < limit])
    return found


@pytest.mark.slow
@examples(80)
@given(side, side, st.integers(1, 40), st.integers(0, 99))
@example(np.zeros(3), np.zeros(40), 11, 0)
@example(np.arange(30.0), np.repeat([5.0, 29.0], 20), 21, 1)
@example(np.arange(30.0), np.arange(30.0, 50.0), 31, 2)
def test_every_metric_is_the_slow_one(id_test, ood_test, n_val, seed):
    # whole numbers, so that the percentile of NumPy and ours cannot round to different sides of a score
    id_val = np.random.default_rng(seed).integers(-8, 8, size=10 * n_val + 1).astype(float)
    found, expected = crossval_metrics(id_test, ood_test, id_val), slow(id_test, ood_test, id_val)
    assert list(found) == [each.name for each in CROSSVAL]
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-9), name


def test_between_two_validation_scores_the_threshold_is_interpolated():
    # 10 scores: position 8.1, so 8 + .1 * (9 - 8); an image at 8.05 is kept and one at 8.15 is not
    id_val = np.arange(10.0)
    assert crossval_metrics([8.05], [8.15], id_val)["accuracy_at_90_id_kept"] == 1
    assert crossval_metrics([8.15], [8.05], id_val)["accuracy_at_90_id_kept"] == 0
    # 11 scores: exactly the score 9, which is kept itself
    assert crossval_metrics([9.0], [np.nextafter(9.0, 10.0)], np.arange(11.0))["accuracy_at_90_id_kept"] == 1


def test_the_hand_made_case():
    found = crossval_metrics([0.1, 0.2, 0.3, 0.4], [0.25, 0.4, 0.9], [0.1, 0.2, 0.3, 0.4])
    assert found["auroc"] == pytest.approx(9.5 / 12)
    assert found["max_f1_id_positive"] == pytest.approx(2 * 4 / (4 + 4 + 2))
    assert found["max_f1_ood_positive"] == pytest.approx(2 * 3 / (3 + 3 + 2))
    # kept up to .37: three ID right, .4 and .9 right
    assert found["accuracy_at_90_id_kept"] == pytest.approx(5 / 7)


@examples(50)
@given(side, side)
def test_turning_the_question_round_swaps_the_orientations(id_test, ood_test):
    one, other = crossval_metrics(id_test, ood_test, [0.0]), crossval_metrics(-ood_test, -id_test, [0.0])
    for name in ("tpr5_{}_positive_interpolated", "max_f1_{}_positive"):
        assert one[name.format("id")] == pytest.approx(other[name.format("ood")], abs=1e-12)
    assert one["aupr_in"] == pytest.approx(other["aupr_out"], abs=1e-12)
    assert one["auroc"] == pytest.approx(other["auroc"], abs=1e-12)


@examples(50)
@given(side, side)
def test_the_line_between_vertices_is_never_below_the_vertex(id_test, ood_test):
    ranking = Ranking(id_test, ood_test)
    for positive in ("id", "ood"):
        line, vertex = (
            ranking.walk(positive).interpolated_tpr_at_fpr(0.05),
            ranking.tpr_at_fpr(0.05, positive=positive),
        )
        assert line >= vertex - 1e-12
        if not set(id_test.tolist()) & set(ood_test.tolist()):
            assert line == pytest.approx(vertex, abs=1e-12)


def test_a_slanted_step_after_a_passed_negative():
    # 40 OOD, 10 ID: one OOD passes, then 5 OOD and 4 ID are tied; 5 % is 2 OOD, a fifth of the way up
    ood_test, id_test = np.r_[0.0, np.ones(5), np.full(34, 9.0)], np.r_[np.ones(4), np.full(6, 5.0)]
    assert crossval_metrics(id_test, ood_test, [0.0])["tpr5_id_positive_interpolated"] == pytest.approx(0.2 * 4 / 10)
    assert Ranking(id_test, ood_test).tpr_at_fpr(0.05, positive="id") == 0


def test_calling_everything_id_reaches_the_f1_of_the_paper():
    # .8889 at 80 % ID: the smallest F1 of its hierarchical pair is .8894
    useless = crossval_metrics(np.zeros(80), np.zeros(20), [0.0])
    assert useless["max_f1_id_positive"] == pytest.approx(2 * 0.8 / 1.8)
    # saturated accuracy is 1 - .1 * share of ID: .9538 for CIFAR-10 (60,000) against MNIST (70,000)
    perfect = crossval_metrics(np.arange(6000.0), np.arange(7000.0) + 1e6, np.arange(6000.0))
    assert perfect["accuracy_at_90_id_kept"] == pytest.approx(0.9538, abs=5e-5)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (([], [1.0], [1.0]), "ID scores are empty"),
        (([1.0], [np.nan], [1.0]), "OOD scores: 1 of 1 are NaN"),
        (([1.0], [1.0], [np.inf]), "ID validation scores: 1 of 1 are NaN or infinite"),
    ],
)
def test_misuse_is_named(scores, message):
    with pytest.raises(OodscopeError, match=message):
        crossval_metrics(*scores)
