"""OSCR and the trapezoid area, against slow twins and at their ends."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.metrics import auc, precision_recall_curve, roc_auc_score

from oodscope.metrics.catalog import METRICS
from oodscope.metrics.metric import columns_of


def sample(seed=0, n=60, ties=False, accuracy=0.7):
    rng = np.random.default_rng(seed)
    known, ood = rng.normal(size=n), rng.normal(0.7, size=n + 10)
    if ties:
        known, ood = known.round(), ood.round()
    return known, ood, rng.random(n) < accuracy


def measured(name, known, ood, correct, weights=None):
    columns = columns_of(known, ood, id_correct=correct)
    return METRICS[name].value(columns, np.ones(len(known) + len(ood)) if weights is None else weights)


def slow_oscr(known, ood, correct):
    """The curve point by point: kept is what scores below a threshold."""
    thresholds = [-np.inf, *sorted({*known, *ood}), np.inf]
    right = [np.mean((known < t) & correct) for t in thresholds]
    kept = [np.mean(ood < t) for t in thresholds]
    return float(trapezoid(right, kept))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("accuracy", [0.0, 0.7, 1.0])
def test_oscr_is_the_area_under_its_curve(ties, accuracy):
    parts = sample(ties=ties, accuracy=accuracy)
    assert measured("oscr", *parts) == pytest.approx(slow_oscr(*parts), abs=1e-12)


def test_a_perfect_detector_leaves_the_accuracy():
    known, ood, correct = sample()
    assert measured("oscr", known - 100, ood, correct) == pytest.approx(correct.mean(), abs=1e-12)


def test_a_perfect_classifier_leaves_the_auroc():
    known, ood, _ = sample(ties=True)
    truth = [0] * len(known) + [1] * len(ood)
    auroc = roc_auc_score(truth, np.concatenate([known, ood]))
    assert measured("oscr", known, ood, np.ones(len(known), dtype=bool)) == pytest.approx(auroc, abs=1e-12)


def test_a_weight_of_two_is_the_image_twice():
    known, ood, correct = sample(ties=True)
    weights = np.ones(len(known) + len(ood))
    weights[3], weights[len(known) + 5] = 2, 2
    twice = np.append(known, known[3]), np.append(ood, ood[5]), np.append(correct, correct[3])
    for name in ("oscr", "aupr_out_trapezoid"):
        assert measured(name, known, ood, correct, weights) == pytest.approx(measured(name, *twice), abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_the_trapezoid_area_is_scikit_learns(ties):
    known, ood, correct = sample(ties=ties)
    truth = [0] * len(known) + [1] * len(ood)
    precision, recall, _ = precision_recall_curve(truth, np.concatenate([known, ood]))
    assert measured("aupr_out_trapezoid", known, ood, correct) == pytest.approx(auc(recall, precision), abs=1e-12)
