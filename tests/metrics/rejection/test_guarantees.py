"""False discovery rate, precision at a prevalence, and an alarm that is valid whenever one looks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from oodscope.base.errors import DataError
from oodscope.metrics.rejection.conformal import calibrate
from oodscope.metrics.rejection.exchangeability import (
    ExchangeabilityAlarm,
    alarm_power,
    first_alarm,
    log_mixture,
)
from oodscope.metrics.rejection.fdr import conditional_bounds, select_outliers
from oodscope.metrics.rejection.precision import measure_precision, precision_at


def slow_benjamini_hochberg(p_values, target):
    """From the definition: the largest k with p_(k) <= target k / m, and all p-values up to it."""
    m, k = len(p_values), 0
    for number, p in enumerate(sorted(p_values), start=1):
        if p <= target * number / m + 1e-15:
            k = number
    return [k > 0 and p <= sorted(p_values)[k - 1] for p in p_values]


@given(st.lists(st.integers(0, 12), min_size=2, max_size=30), st.lists(st.integers(0, 15), min_size=1, max_size=25))
def test_selection_is_benjamini_hochberg_on_conformal_p_values(known, batch):
    calibration = calibrate(np.array(known, float), 0.5)
    chosen = select_outliers(calibration, np.array(batch, float), 0.3)
    slow = [(1 + sum(s >= b for s in known)) / (len(known) + 1) for b in batch]
    assert np.allclose(chosen.p_values, slow)
    assert chosen.flagged.tolist() == slow_benjamini_hochberg(slow, 0.3)
    assert not chosen.flagged.any() or chosen.flagged.sum() >= chosen.least


@given(st.floats(0.01, 0.5), st.integers(2, 400), st.integers(0, 1000))
def test_a_threshold_without_outliers_is_never_the_minimum(target, n, seed):
    scores = np.random.default_rng(seed).normal(size=n)
    try:
        threshold = calibrate(scores, target).threshold
    except DataError:
        assert n < 1 / target - 1  # refused for want of images, and for nothing else
    else:
        assert threshold > scores.min()


def test_the_rate_of_false_discoveries_stays_below_its_target_over_calibration_and_batch():
    rng, shares = np.random.default_rng(0), []
    for _ in range(400):
        calibration = calibrate(rng.normal(size=200), 0.1)
        truth = np.arange(100) < 20
        chosen = select_outliers(calibration, rng.normal(size=100) + 3 * truth, 0.2).flagged
        shares.append((chosen & ~truth).sum() / max(1, chosen.sum()))
    error = np.std(shares) / 20
    assert np.mean(shares) <= 0.2 * 0.8 + 3 * error  # the target times the share of ID images
    assert np.mean(shares) > 0.1  # and it is not met by flagging nothing


def test_conditional_bounds_hold_for_all_order_statistics_at_once():
    rng, n = np.random.default_rng(1), 60
    bounds = conditional_bounds(n, 0.1)
    assert bounds[-1] == 1 and (np.diff(bounds) >= 0).all() and bounds[0] == pytest.approx(1 - 0.1 ** (1 / 30))
    inside = np.mean([(np.sort(rng.random(n)) <= bounds[:-1]).all() for _ in range(4000)])
    assert 0.9 - 3 * 0.005 <= inside < 0.99


def test_the_conditional_form_flags_fewer_and_warns_of_too_few_calibration_images():
    rng = np.random.default_rng(2)
    calibration = calibrate(rng.normal(size=99), 0.1)
    batch = rng.normal(size=200) + 4 * (np.arange(200) < 60)
    marginal, conditional = select_outliers(calibration, batch, 0.1), select_outliers(calibration, batch, 0.1, 0.9)
    assert conditional.flagged.sum() <= marginal.flagged.sum() and (conditional.p_values >= marginal.p_values).all()
    assert marginal.least == 20 and "fewer than 20 outliers" in marginal.warning
    assert "none of these 2,000 images" in select_outliers(calibration, np.zeros(2000), 0.009).warning
    assert select_outliers(calibration, batch[:5], 0.1).warning == ""
    assert "90 % of calibration sets" in str(conditional) and "covariate-shifted" in str(marginal)
    with pytest.raises(DataError, match="between 0 and 1"):
        select_outliers(calibration, batch, 10)


@given(st.floats(0.01, 1), st.floats(0.001, 1), st.floats(0.01, 0.99))
def test_precision_is_bayes_rule(tpr, fpr, prevalence):
    value = float(precision_at(tpr, fpr, prevalence))
    assert value / (1 - value) == pytest.approx(prevalence / (1 - prevalence) * tpr / fpr) or value == 1
    assert float(precision_at(tpr, 0.0, prevalence)) == 1
    assert np.isnan(precision_at(0.0, 0.0, prevalence))


def test_the_interval_covers_the_precision_of_the_threshold_that_was_found():
    """Its rate of false alarms on other images is not the one it was found at; that is most of the doubt."""
    rng, inside = np.random.default_rng(3), 0
    for seed in range(300):
        known = rng.normal(size=500)
        found = measure_precision(known, rng.normal(size=300) + 2, 0.01, replicates=300, seed=seed)
        threshold = np.sort(known)[500 - 25 - 1]
        truth = float(precision_at(norm.sf(threshold - 2), norm.sf(threshold), 0.01))
        inside += found.interval.low <= truth <= found.interval.high
    assert 0.91 <= inside / 300 < 0.99


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=40))
def test_the_mixture_is_its_integral(p_values):
    total, t = -np.log(p_values).sum(), len(p_values)
    slow, _ = quad(lambda e: np.exp(t * np.log(e) + (1 - e) * total) if e > 0 else 0.0, 0, 1, limit=200)
    assert float(log_mixture(t, total)) == pytest.approx(np.log(slow), abs=1e-6)


def test_the_mixture_survives_long_streams_of_large_p_values():
    assert float(log_mixture(100_000, 10.0)) == pytest.approx(-np.log(100_001), rel=1e-3)
    assert np.isfinite(log_mixture([5, 5000, 10**6], [0.0, 4000.0, 1.2e6])).all()


def test_online_p_values_are_uniform_under_ties_too_and_the_alarm_is_rarely_false():
    rng, alarms, pooled = np.random.default_rng(4), 0, []
    for seed in range(60):
        pool = np.round(rng.normal(size=200), 1)  # many ties
        alarm = ExchangeabilityAlarm(pool[:100], alpha=0.1, seed=seed)
        pooled.append(alarm.observe_all(pool[100:]))
        alarms += alarm.alarm is not None
    assert alarms <= 6 + 3 * np.sqrt(5.4)
    shares = np.histogram(np.concatenate(pooled), bins=10, range=(0, 1))[0] / 6_000
    assert np.abs(shares - 0.1).max() < 4 * np.sqrt(0.09 / 6_000)


def test_an_alarm_goes_off_for_outliers_and_says_what_it_means():
    rng = np.random.default_rng(5)
    alarm = ExchangeabilityAlarm(rng.normal(size=300), alpha=0.01)
    alarm.observe_all(rng.normal(size=60) + 3 * (rng.random(60) < 0.5))
    assert alarm.alarm is not None and alarm.alarm < 60
    assert "not exchangeable" in str(alarm) and "OOD" not in str(alarm)
    at = alarm.alarm
    alarm.observe_all(rng.normal(size=200))
    assert alarm.alarm == at and alarm.largest_log_evidence >= np.log(100)
    with pytest.raises(DataError, match="score 261 of the stream is nan"):
        alarm.observe(float("nan"))


def test_all_at_once_is_one_at_a_time():
    rng = np.random.default_rng(6)
    known, stream = rng.normal(size=50), rng.normal(size=80) + 2
    alarm = ExchangeabilityAlarm(known, alpha=0.05)
    alarm.observe_all(stream)
    assert first_alarm(known, stream, 0.05, rng) == pytest.approx(alarm.alarm, abs=3)  # continuous: no ties to break


def test_power_falls_with_the_share_of_outliers():
    half, tenth = alarm_power(np.arange(200.0), shares=(0.5, 0.02), horizon=200, streams=15)
    assert half.caught > 0.9 > tenth.caught
    assert "50 % outliers: alarm within 200 images" in str(half) and half.median < 100 and tenth.median is None
    real = alarm_power(np.arange(200.0), shares=(0.5,), horizon=200, streams=5, outliers=[500.0, 501.0])
    assert real[0].caught == 1
