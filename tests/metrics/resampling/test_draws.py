"""Blocks of counts are the resamples, one replicate after the other."""

import numpy as np
import pytest

from oodscope.metrics.resampling.draws import Draws, lanes_for, lanes_of, resamples


@pytest.mark.parametrize("n", [1, 2, 3, 7, 200, 401, 70_001])
@pytest.mark.parametrize("ood_set", [None, "svhn"])
def test_counts_are_those_of_the_resamples(n, ood_set):
    one_by_one = resamples(n, seed=3, ood_set=ood_set)
    lanes = lanes_for(n)
    draws = Draws(n, seed=3, ood_set=ood_set, rows=3, lanes=lanes)
    for _ in range(2):
        for row in lanes_of(draws.take(), lanes):
            for counts in row:
                np.testing.assert_array_equal(counts, np.bincount(next(one_by_one), minlength=n))
