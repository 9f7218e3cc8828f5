"""Thresholds keep their promise: simulated, under ties, and at the edge of what n images allow."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from oodscope.base.errors import DataError, OodscopeError
from oodscope.metrics.rejection.conformal import calibrate, least_images, most_above

DRAWS = 1000


def rates(n, target, kind, seed=0, levels=None):
    """The true false-alarm rate of each of many calibrations on uniform scores, rounded to ``levels`` if given."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(DRAWS):
        scores = rng.random(n)
        if levels:
            scores = np.floor(scores * levels)
        threshold = calibrate(scores, target, kind).threshold
        found.append(1 - (threshold + 1) / levels if levels else 1 - threshold)
    return np.array(found)


@pytest.mark.parametrize(("n", "target"), [(99, 0.05), (200, 0.05), (99, 0.01), (250, 0.1)])
class TestSimulated:
    def test_conformal_rate_has_its_exact_law(self, n, target):
        found = rates(n, target, "conformal")
        alarms = math.floor(Fraction(str(target)) * (n + 1))
        law = stats.beta(alarms, n + 1 - alarms)
        assert stats.kstest(found, law.cdf).pvalue > 1e-3
        error = 4 * law.std() / math.sqrt(DRAWS)
        assert found.mean() <= target + error
        assert found.mean() >= target - 1 / (n + 1) - error
        # the law itself, without simulation error
        assert target - 1 / (n + 1) < law.mean() <= target

    def test_alarms_among_new_images_are_beta_binomial(self, n, target):
        rng, fresh, alarms = np.random.default_rng(1), 500, math.floor(Fraction(str(target)) * (n + 1))
        counts = []
        for _ in range(DRAWS):
            calibration = calibrate(rng.normal(size=n), target)
            counts.append(int((~calibration.accepts(rng.normal(size=fresh))).sum()))
        law = stats.betabinom(fresh, alarms, n + 1 - alarms)
        edges = np.unique(law.ppf([0.1, 0.25, 0.5, 0.75, 0.9]))
        expected = np.diff([0.0, *law.cdf(edges), 1.0]) * DRAWS
        observed = np.diff([0, *[(np.array(counts) <= edge).sum() for edge in edges], DRAWS])
        assert stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.parametrize(("n", "target"), [(299, 0.01), (59, 0.05), (400, 0.05), (200, 0.1)])
def test_pac_fails_as_rarely_as_it_says(n, target):
    violated = int((rates(n, target, "pac", seed=2) > target).sum())
    exact = stats.binom.cdf(most_above(n, target, "pac"), n, target)
    assert exact <= 0.05
    assert stats.binomtest(violated, DRAWS, exact).pvalue > 1e-3
    # and it is the smallest threshold that does
    assert stats.binom.cdf(most_above(n, target, "pac") + 1, n, target) > 0.05


@pytest.mark.parametrize("levels", [2, 5, 30])
def test_ties_make_it_safer_never_wrong(levels):
    conformal = rates(120, 0.05, "conformal", seed=3, levels=levels)
    assert conformal.mean() <= 0.05 + 4 * conformal.std() / math.sqrt(DRAWS)
    violated = (rates(120, 0.05, "pac", seed=4, levels=levels) > 0.05).mean()
    assert violated <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / DRAWS)


def test_scores_that_are_all_equal_are_all_accepted():
    calibration = calibrate(np.zeros(50), 0.05)
    assert calibration.accepts([0.0]).all()
    assert not calibration.accepts([1e-300]).any()
    assert calibration.p_values([0.0, 1.0]).tolist() == [1.0, 1 / 51]


def slow_rank(n, target):
    """ceil((n + 1)(1 - target)) in exact arithmetic."""
    return math.ceil((n + 1) * (1 - Fraction(str(target))))


@pytest.mark.parametrize("target", [0.01, 0.05, 0.07, 0.1, 0.2, 0.3, 1 / 8])
def test_the_threshold_is_the_rank_of_the_textbook(target):
    for n in range(1, 300):
        k = slow_rank(n, target)
        if k > n:
            assert most_above(n, target) is None
        else:
            assert calibrate(np.arange(n)[::-1], target).threshold == k - 1


@given(
    st.lists(st.integers(0, 12), min_size=20, max_size=60),
    st.lists(st.integers(-2, 15), min_size=1, max_size=20),
    st.sampled_from([0.05, 0.1, 0.25, 0.5]),
)
def test_rejected_is_exactly_where_the_p_value_reaches_the_target(known, fresh, target):
    calibration = calibrate(known, target)
    slow = [(1 + sum(score >= s for score in known)) / (len(known) + 1) for s in fresh]
    assert calibration.p_values(fresh).tolist() == slow
    assert calibration.accepts(fresh).tolist() == [p > target for p in slow]


def test_p_values_of_known_images_are_never_too_small():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(DRAWS):
        scores = np.floor(rng.random(40) * 15)
        found.append(calibrate(scores[:-1], 0.1).p_values(scores[-1:])[0])
    for level in (0.05, 0.1, 0.3, 0.6):
        assert (np.array(found) <= level).mean() <= level + 4 * math.sqrt(level * (1 - level) / DRAWS)


class TestTooFew:
    def test_the_text_says_how_many(self):
        with pytest.raises(
            DataError,
            match=r"^a target of 0.01 needs at least 99 calibration images \(PAC at 95 %: 299\); there are 50$",
        ):
            calibrate(np.arange(50), 0.01)

    @pytest.mark.parametrize(
        ("kind", "target", "least"),
        [
            ("conformal", 0.01, 99),
            ("conformal", 0.05, 19),
            ("conformal", 0.1, 9),
            ("pac", 0.01, 299),
            ("pac", 0.05, 59),
        ],
    )
    def test_one_fewer_is_refused(self, kind, target, least):
        assert least_images(target, kind) == least
        assert calibrate(np.arange(least), target, kind).threshold == least - 1
        with pytest.raises(DataError, match=f"there are {least - 1}$"):
            calibrate(np.arange(least - 1), target, kind)

    def test_confidence_counts(self):
        assert least_images(0.01, "pac", 0.99) == 459


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"target": 5}, "target rate of false alarms lies between 0 and 1, such as 0.05; it is 5"),
        ({"target": 0.0}, "lies between 0 and 1"),
        (
            {"target": 0.05, "kind": "pac", "confidence": 95},
            "confidence level lies between 0 and 1, such as 0.95; it is 95",
        ),
        ({"target": 0.05, "kind": "conformel"}, "unknown guarantee 'conformel'. Did you mean 'conformal'"),
    ],
)
def test_mistakes(kwargs, message):
    with pytest.raises(OodscopeError, match=message):
        calibrate(np.arange(100), **kwargs)


def test_nan_has_no_rank():
    with pytest.raises(DataError, match="calibration scores: 1 of 3 are NaN or infinite"):
        calibrate([0.0, np.nan, 1.0], 0.5)


def test_the_promise_is_worded_with_its_limits():
    text = str(calibrate(np.arange(1000), 0.05, "pac", 0.9).guarantee)
    assert "1,000 calibration images: at most 5 % with confidence 90 % (pac)" in text
    assert "nothing is promised about outliers or shifted images" in text
    assert "on average (conformal)" in str(calibrate(np.arange(100), 0.05).guarantee)
