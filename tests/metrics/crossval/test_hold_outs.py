"""The error of a cross-validation beside that of as many hold-outs, where both are known."""

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.metrics.crossval.hold_outs import error_ratio


@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.5])
def test_a_known_ratio_is_found_and_covered(ratio):
    """A hold-out errs with sd 1, five with 1/sqrt(5); a cross-validation with ``ratio`` times that."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(4, 12))
        hold_outs = truth + rng.normal(size=(40, 4, 12))
        repetitions = truth + ratio / np.sqrt(5) * rng.normal(size=(5, 4, 12))
        found.append(error_ratio(hold_outs, repetitions, 5))
    assert np.median([each.value for each in found]) == pytest.approx(ratio, rel=0.1)
    assert np.mean([each.low <= ratio <= each.high for each in found]) > 0.8


def test_too_few_hold_outs_are_refused():
    with pytest.raises(DataError, match="at least 10 hold-outs; there are 9"):
        error_ratio(np.zeros((9, 2, 3)), np.zeros((1, 2, 3)), 5)
