"""Counts are the resamples, one replicate after the other."""

import numpy as np
import pytest

from oodscope.metrics.resampling.draws import Draws, resamples


@pytest.mark.parametrize("n", [1, 2, 3, 7, 200, 401, 70_001])
@pytest.mark.parametrize("ood_set", [None, "svhn"])
@pytest.mark.parametrize("together", [2**19, 500])
def test_counts_are_those_of_the_resamples(n, ood_set, together, monkeypatch):
    monkeypatch.setattr("oodscope.metrics.resampling.draws._TOGETHER", together)
    one_by_one = resamples(n, seed=3, ood_set=ood_set)
    draws = Draws(n, seed=3, ood_set=ood_set)
    for _ in range(2):
        drawn = draws.take(12)
        assert drawn.most == drawn.counts.max()
        for counts in drawn.counts.T:
            np.testing.assert_array_equal(counts, np.bincount(next(one_by_one), minlength=n))


@pytest.mark.parametrize("n", [1, 3, 7, 9_000, 65_536, 70_001, 2**20 + 3])
def test_half_as_many_bits_are_the_same_draws(n):
    """An accelerator is handed 32-bit rows; a NumPy that drew others would give it other replicates."""
    wide, narrow = np.random.default_rng(5), np.random.default_rng(5)
    for size in (min(n, 9_001), 3):
        np.testing.assert_array_equal(wide.integers(n, size=size), narrow.integers(n, size=size, dtype=np.int32))
