"""The error of a cross-validation beside that of as many hold-outs, where both are known."""

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.metrics.crossval.hold_outs import error_ratio


def drawn(rng, count, spread, cells, shared):
    """Errors of standard deviation ``spread``, of whose variance a share is common to all cells of a draw."""
    common = np.sqrt(shared) * rng.normal(size=(count, 1, 1))
    return spread * (common + np.sqrt(1 - shared) * rng.normal(size=(count, 4, cells)))


@pytest.mark.parametrize(("cells", "shared"), [(1, 0.0), (12, 0.0), (12, 0.4)])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.5])
def test_a_known_ratio_is_found_and_covered(ratio, cells, shared):
    """A hold-out errs with sd 1, five with 1/sqrt(5); a cross-validation with ``ratio`` times that."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(4, cells))
        hold_outs, others = (truth + drawn(rng, 50, 1.0, cells, shared) for _ in range(2))
        repetitions = truth + drawn(rng, 10, ratio / np.sqrt(5), cells, shared)
        found.append(error_ratio(hold_outs, others, repetitions, 5))
    assert np.median([each.value for each in found]) == pytest.approx(ratio, rel=0.1)
    assert 0.88 <= np.mean([each.low <= ratio <= each.high for each in found]) <= 0.99


def test_one_cross_validation_has_no_interval():
    rng = np.random.default_rng(0)
    found = error_ratio(rng.normal(size=(10, 2, 3)), rng.normal(size=(10, 2, 3)), rng.normal(size=(1, 2, 3)), 5)
    assert found.value > 0 and np.isnan(found.low) and np.isnan(found.high)
    assert "[" not in str(found)


def test_a_cross_validation_without_error_of_its_own_has_the_ratio_zero():
    rng = np.random.default_rng(0)
    others = rng.normal(size=(20, 2, 3))
    repetitions = 0.01 * rng.normal(size=(4, 2, 3))
    found = error_ratio(3 * rng.normal(size=(20, 2, 3)), np.concatenate([others, -others]), repetitions, 5)
    assert found.value == found.low == 0.0 and 0.0 <= found.high < 1.0


def test_errors_below_that_of_the_truth_are_not_measurable():
    truth = np.array([0.0, 2.0] * 5)[:, None, None]
    found = error_ratio(np.ones((10, 1, 1)), truth, np.ones((2, 1, 1)), 5)
    assert np.isnan(found.value) and str(found) == "not measurable"


def test_too_few_hold_outs_are_refused():
    with pytest.raises(DataError, match="at least 10 hold-outs; there are 9"):
        error_ratio(np.zeros((4, 2, 3)), np.zeros((5, 2, 3)), np.zeros((1, 2, 3)), 5)
