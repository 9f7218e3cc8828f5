"""The OOD class as the unit of a cross-validation: values of classes, their interval and its coverage."""

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.metrics.crossval.class_groups import class_group_intervals
from oodscope.metrics.crossval.class_units import class_aurocs, class_interval, class_tests, mean_class_interval
from oodscope.metrics.ranking.ranking import Ranking


def test_classes_average_to_the_whole_under_ties():
    rng = np.random.default_rng(0)
    known, outliers = rng.integers(0, 9, 60).astype(float), rng.integers(2, 12, 50).astype(float)
    classes = rng.integers(0, 4, 50) * 3
    present, values, sizes = class_aurocs(known, outliers, classes)
    assert present.tolist() == sorted(set(classes.tolist())) and sizes.sum() == 50
    for number, value in zip(present, values):
        assert value == pytest.approx(Ranking(known, outliers[classes == number]).walk("ood").auroc(), abs=1e-12)
    assert np.average(values, weights=sizes) == pytest.approx(Ranking(known, outliers).walk("ood").auroc(), abs=1e-12)


def test_the_interval_covers_other_classes_where_groups_of_them_do_not():
    """Ten classes dealt into five folds, one repetition: the bootstrap of folds covers less than 90 %."""
    covered = {"classes": 0, "folds": 0}
    rng = np.random.default_rng(1)
    for _ in range(600):
        values = np.clip(0.7 + 0.08 * rng.normal(size=10), 0, 1)
        low, high = class_interval(values)
        covered["classes"] += low <= 0.7 <= high
        folds = values.reshape(5, 2).mean(axis=1)
        low, high = class_group_intervals(folds[None, :, None], count=400)[:, 0]
        covered["folds"] += low <= 0.7 <= high
    assert 0.925 <= covered["classes"] / 600 <= 0.975
    assert covered["folds"] / 600 < 0.9


def test_a_mean_over_cells_counts_a_shared_class_once():
    """Two cells of one OOD set with equal values say no more than one of them; of two OOD sets they say more."""
    values = np.random.default_rng(2).uniform(0.6, 0.9, size=(12, 1))
    alone = mean_class_interval({"svhn": [values]})
    shared = mean_class_interval({"svhn": [values, values]})
    apart = mean_class_interval({"svhn": [values], "mnist": [values[::-1]]})
    assert np.allclose(alone, shared) and np.allclose(alone, np.array(class_interval(values)))
    assert apart[1][0] - apart[0][0] < shared[1][0] - shared[0][0]


def test_few_classes_are_refused():
    with pytest.raises(DataError, match="needs 5 classes; there are 4"):
        class_interval(np.full(4, 0.5))
    with pytest.raises(DataError, match="needs 5 classes; there are 3"):
        class_tests(np.zeros(3))


def test_differences_over_classes_are_tested_in_pairs():
    level = np.random.default_rng(3).uniform(0.3, 0.9, size=20)
    noise = 0.01 * np.random.default_rng(4).normal(size=20)
    assert class_tests((level + 0.02 + noise) - level) < 0.001
    assert class_tests(np.zeros(20)) == 1.0
