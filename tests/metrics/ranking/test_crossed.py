"""The mean AUROC over pairs of sets: against all pairs of images, weights, DeLong and resampling."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from oodscope.base.errors import DataError
from oodscope.metrics.ranking.crossed import crossed_auroc
from oodscope.metrics.ranking.delong import mean_auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from tests.examples import examples

side = st.lists(st.lists(st.integers(0, 6).map(float), min_size=1, max_size=12), min_size=1, max_size=3)


def slow(negatives, positives):
    """One pair of images at a time."""
    values = [
        np.mean([(b > a) + 0.5 * (b == a) for a in negative for b in positive])
        for negative in negatives
        for positive in positives
    ]
    return np.mean(values)


@examples(80)
@given(side, side)
def test_it_is_the_mean_over_pairs_and_the_weighted_auroc(negatives, positives):
    value, interval = crossed_auroc(negatives, positives)
    assert value == pytest.approx(slow(negatives, positives), abs=1e-12)
    assert interval.low - 1e-12 <= value <= interval.high + 1e-12
    scores = np.concatenate([*map(np.array, negatives), *map(np.array, positives)])
    labels = np.repeat([0, 1], [sum(map(len, negatives)), sum(map(len, positives))])
    weights = np.concatenate([np.full(len(each), 1 / len(each)) for each in (*negatives, *positives)])
    assert value == pytest.approx(roc_auc_score(labels, scores, sample_weight=weights), abs=1e-9)


@examples(60)
@given(st.lists(st.integers(0, 6).map(float), min_size=2, max_size=12), side)
@example([1.0, 1.0], [[0.0, 0.0], [1.0]])  # one set separated, another one smaller
def test_against_one_negative_sample_it_is_the_mean_of_the_other_function(negative, positives):
    value, interval = crossed_auroc([negative], positives, level=0.9)
    other = mean_auroc_interval([Ranking(negative, each) for each in positives], level=0.9)
    assert (interval.low, interval.high, interval.method) == (
        pytest.approx(other.low, abs=1e-9),
        pytest.approx(other.high, abs=1e-9),
        other.method,
    )


def test_swapping_sides_and_signs_changes_nothing():
    rng = np.random.default_rng(0)
    negatives = [rng.normal(size=n) for n in (30, 80)]
    positives = [rng.normal(1, 1, size=n) for n in (50, 20, 40)]
    here = crossed_auroc(negatives, positives)
    there = crossed_auroc([-each for each in positives], [-each for each in negatives])
    assert here[0] == pytest.approx(there[0], abs=1e-12)
    assert (here[1].low, here[1].high) == pytest.approx((there[1].low, there[1].high), abs=1e-12)


def test_the_interval_covers():
    """Two negative and two positive sets of unlike sizes: 95 % of intervals hold the true mean."""
    from scipy.stats import norm

    shifts, sizes = [(0.0, 0.5), (1.0, 2.0)], [(120, 30), (25, 80)]
    truth = np.mean([norm.cdf((b - a) / np.sqrt(2)) for a in shifts[0] for b in shifts[1]])
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(600):
        negatives, positives = (
            [rng.normal(shift, 1, size=n) for shift, n in zip(shift_side, size_side)]
            for shift_side, size_side in zip(shifts, sizes)
        )
        interval = crossed_auroc(negatives, positives)[1]
        hits += interval.low <= truth <= interval.high
    assert 0.92 <= hits / 600 <= 0.98


def test_one_separated_set_among_others_still_has_width():
    rng = np.random.default_rng(2)
    mixed, apart = rng.normal(size=40), rng.normal(-50, 1, size=40)
    positives = [rng.normal(size=40)]
    both = crossed_auroc([mixed, apart], positives)[1]
    assert 0 < both.high - both.low < 0.5
    value, interval = crossed_auroc([apart, apart - 1], positives)
    assert (value, interval.high, interval.method) == (1.0, 1.0, "exact-separation")
    assert interval.low == pytest.approx(0.025 ** (1 / 40))


def test_a_side_without_a_set_is_refused():
    with pytest.raises(DataError, match="at least one set on each side"):
        crossed_auroc([], [[1.0]])
