"""Paired tests against their definitions over all pairs, SciPy, statsmodels and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, ttest_1samp
from statsmodels.stats.multitest import multipletests

from oodscope.base.errors import OodscopeError
from oodscope.metrics.comparison.multiplicity import benjamini_hochberg, holm
from oodscope.metrics.comparison.paired import (
    corrected_t,
    detectable_difference,
    paired_bootstrap,
    paired_delong,
)
from oodscope.metrics.comparison.simultaneous import rank_ranges
from oodscope.metrics.ranking.placements import place
from oodscope.metrics.resampling.resampling import bootstrap_each
from tests.examples import examples

few = st.integers(0, 6).map(float)
images = st.integers(2, 15).flatmap(lambda n: st.tuples(*[st.lists(few, min_size=n, max_size=n).map(np.array)] * 2))


def wins(id_scores, ood):
    return (ood > id_scores[:, None]) + 0.5 * (ood == id_scores[:, None])


def delong_covariance(one, two):
    """The two AUROCs and the 2x2 covariance of the 1988 paper, from every pair of images."""
    pairs = [wins(*one), wins(*two)]
    by_id, by_ood = [p.mean(axis=1) for p in pairs], [p.mean(axis=0) for p in pairs]
    n_id, n_ood = pairs[0].shape
    return [p.mean() for p in pairs], np.cov(by_id) / n_id + np.cov(by_ood) / n_ood


@examples(80)
@given(images, images)
def test_paired_delong_is_the_contrast_of_the_covariance_matrix(id_scores, ood):
    (a, b), covariance = delong_covariance((id_scores[0], ood[0]), (id_scores[1], ood[1]))
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    first, second = (place(id_scores[k], {"o": ood[k]}) for k in (0, 1))
    test = paired_delong(first, second)
    assert (test.first, test.second) == pytest.approx((a, b))
    assert test.difference == pytest.approx(a - b, abs=1e-12)
    if variance > 1e-12:
        assert test.error == pytest.approx(np.sqrt(variance))
        assert test.statistic == pytest.approx((a - b) / np.sqrt(variance), abs=1e-9)
        assert test.p == pytest.approx(2 * norm.sf(abs(test.statistic)))
        reach = norm.ppf(0.975) * test.error
        ends = max(test.difference - reach, -1), min(test.difference + reach, 1)
        assert (test.low, test.high) == pytest.approx(ends)
    back = paired_delong(second, first)
    assert back.difference == pytest.approx(-test.difference, abs=1e-12)
    assert (back.low, back.high, back.p) == pytest.approx((-test.high, -test.low, test.p), abs=1e-12)


@examples(40)
@given(images, images)
def test_only_the_order_of_the_scores_counts(id_scores, ood):
    plain = [place(id_scores[k], {"o": ood[k]}) for k in (0, 1)]
    bent = [place(np.exp(id_scores[0]), {"o": np.exp(ood[0])}), place(id_scores[1] ** 3, {"o": ood[1] ** 3})]
    assert paired_delong(*plain) == paired_delong(*bent)


def made(seed, n_id=150, n_ood=120, gap=0.0):
    """Two detectors that agree in part, the first better by ``gap``; two sets."""
    rng = np.random.default_rng(seed)
    samples = []
    common = [rng.normal(size=n_id), rng.normal(1, 1, size=n_ood), rng.normal(2, 1, size=n_ood)]
    for lead in (gap, 0.0):
        own = [0.7 * rng.normal(size=c.size) for c in common]
        samples.append((common[0] + own[0], {"a": common[1] + own[1] + lead, "b": common[2] + own[2] + lead}))
    return samples


def test_alike_detectors_are_told_apart_as_often_as_the_level_says():
    p = np.array([paired_delong(*(place(*s) for s in made(seed))).p for seed in range(400)])
    assert 0.025 < np.mean(p < 0.05) < 0.08
    assert 0.4 < np.mean(p) < 0.6


def test_the_detectable_difference_is_detected_in_eight_of_ten_cases():
    tests = [paired_delong(*(place(*s) for s in made(seed, gap=0.385))) for seed in range(300)]
    truth = np.mean([test.difference for test in tests])
    assert np.mean([test.detectable for test in tests]) == pytest.approx(truth, rel=0.1)
    assert np.mean([test.p < 0.05 for test in tests]) == pytest.approx(0.8, abs=0.08)
    assert detectable_difference(0.01) == pytest.approx(0.01 * (1.959964 + 0.841621), abs=1e-6)
    assert detectable_difference(0.01, power=0.9, alpha=0.01) == pytest.approx(0.01 * (2.575829 + 1.281552), abs=1e-6)


def test_no_noise_is_no_proof():
    rng = np.random.default_rng(0)
    id_scores, ood = rng.normal(size=8), rng.normal(size=6)
    same = paired_delong(place(id_scores, {"o": ood}), place(2 * id_scores + 1, {"o": 2 * ood + 1}))
    assert (same.difference, same.low, same.high, same.p, same.statistic) == (0, 0, 0, 1, 0)
    perfect, constant = place(id_scores, {"o": ood + 100}), place(0 * id_scores, {"o": 0 * ood})
    test = paired_delong(perfect, constant)
    assert test.difference == 0.5
    assert test.error == pytest.approx(np.sqrt(6.5 * 0.5 / 7**2 / 6))
    assert 0 < test.p < 0.05


def test_paired_bootstrap_takes_replicates_together_and_agrees_with_delong():
    first, second = made(3, 400, 300, gap=0.1)
    draws = bootstrap_each({"x": first, "y": second}, seed=1)
    test = paired_bootstrap(draws["x"], draws["y"], "auroc", ["a", "b"], 0.9)
    together = {k: (draws[k].values["auroc"]["a"] + draws[k].values["auroc"]["b"]) / 2 for k in "xy"}
    differences = together["x"] - together["y"]
    assert (test.low, test.high) == pytest.approx(tuple(np.percentile(differences, [5, 95])))
    assert test.error == pytest.approx(differences.std())
    assert test.method == "bootstrap-paired-1000"
    below = np.sum(differences <= 0)
    assert test.p == pytest.approx(min(1, 2 * (min(below, np.sum(differences >= 0)) + 1) / 1001))
    delong = paired_delong(place(*first), place(*second), 0.9)
    assert test.difference == pytest.approx(delong.difference)
    assert (test.first, test.second) == pytest.approx((delong.first, delong.second))
    assert test.error == pytest.approx(delong.error, rel=0.15)
    back = paired_bootstrap(draws["y"], draws["x"], "auroc", ["a", "b"], 0.9)
    assert (back.p, back.low) == pytest.approx((test.p, -test.high))
    same = paired_bootstrap(draws["x"], draws["x"], "fpr95_id_positive", ["a"])
    assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_corrected_t_of_the_published_fixture():
    d = np.array([0.01, 0.02, 0.015, 0.005, 0.02])
    test = corrected_t(0.8 + d, np.full(5, 0.8), test_to_train=1 / 4)
    assert (test.statistic, test.p) == pytest.approx((3.20131, 0.032860), abs=1e-5)
    plain = ttest_1samp(d, 0)
    assert (plain.statistic, plain.pvalue) == pytest.approx((4.80196, 0.008636), abs=1e-5)
    nearly_plain = corrected_t(0.8 + d, np.full(5, 0.8), test_to_train=1e-12)
    assert (nearly_plain.statistic, nearly_plain.p) == pytest.approx((plain.statistic, plain.pvalue))
    low, high = plain.confidence_interval(0.95)
    assert (nearly_plain.low, nearly_plain.high) == pytest.approx((low, high))
    assert corrected_t([0.5, 0.6], [0.5, 0.6], test_to_train=1).p == 1
    assert corrected_t([0.5, 0.5], [0.25, 0.25], test_to_train=1).p == 0


p_lists = st.lists(st.floats(0, 1) | st.sampled_from([0.01, 0.04]), min_size=1, max_size=12)


@pytest.mark.slow
@examples(25)
@given(p_lists)
def test_corrections_are_statsmodels(p):
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], atol=1e-12)
    np.testing.assert_allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1], atol=1e-12)


@given(p_lists)
def test_corrections_keep_order_and_only_raise(p):
    p = np.array(p)
    for adjusted in (holm(p), benjamini_hochberg(p)):
        assert (adjusted >= p * (1 - 1e-12)).all() and (adjusted <= 1).all()
        assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    assert (holm(p) <= np.minimum(1, len(p) * p) + 1e-15).all()
    assert (benjamini_hochberg(p) <= holm(p) + 1e-15).all()
    assert holm([]).size == 0


def test_rank_ranges_follow_the_pairs_that_are_told_apart():
    rng = np.random.default_rng(5)
    n = 400
    common = [rng.normal(size=n), rng.normal(1.2, 1, size=n)]
    detectors = []
    for noise in (0.1, 0.12, 1.0, 4.0):
        id_scores, ood = (c + noise * rng.normal(size=n) for c in common)
        detectors.append(place(id_scores, {"o": ood}))
    ranges = rank_ranges(detectors)
    assert ranges == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert rank_ranges(detectors[::-1]) == ranges[::-1]
    assert rank_ranges(detectors[:1]) == [(1, 1)]
    order = np.argsort([-d.mean for d in detectors])
    for rank, index in enumerate(order, 1):
        assert ranges[index][0] <= rank <= ranges[index][1]


def test_all_rank_ranges_hold_at_once_for_equals():
    """Five detectors that are alike: with Holm, at most 5 % of tables deny one of them any rank."""
    wrong = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        common = rng.normal(size=60), rng.normal(1, 1, size=60)
        alike = [place(common[0] + rng.normal(size=60), {"o": common[1] + rng.normal(size=60)}) for _ in range(5)]
        wrong += any(r != (1, 5) for r in rank_ranges(alike))
    assert wrong / 120 < 0.1


def test_misuse_is_named():
    one, two = place([0.0, 1.0], {"o": [0.5, 2.0]}), place([0.0, 1.0, 2.0], {"o": [0.5, 2.0]})
    renamed = place([0.0, 1.0], {"other": [0.5, 2.0]})
    draws = bootstrap_each({"a": ([0.0, 1.0], {"o": [0.5]})}, seed=0, replicates=10)["a"]
    longer = bootstrap_each({"a": ([0.0, 1.0], {"o": [0.5]})}, seed=0, replicates=11)["a"]
    for call, message in [
        (lambda: paired_delong(one, two), "only if both scored the same images"),
        (lambda: paired_delong(one, renamed), "only if both scored the same images"),
        (lambda: paired_delong(place([0.0], {"o": [1.0]}), place([0.0], {"o": [2.0]})), "one image has no spread"),
        (lambda: paired_delong(one, one, 95), "it is 95"),
        (lambda: paired_bootstrap(draws, longer, "auroc", ["o"]), "10 replicates meet 11"),
        (lambda: paired_bootstrap(draws, draws, "aurocs", ["o"]), "Did you mean 'auroc'"),
        (lambda: corrected_t([0.1], [0.2], test_to_train=0.25), "it has 1 and 1"),
        (lambda: corrected_t([0.1, 0.2], [0.2], test_to_train=0.25), "it has 2 and 1"),
        (lambda: corrected_t([0.1, 0.2], [0.1, 0.3], test_to_train=0), "0.25 for 5 folds; it is 0"),
        (lambda: holm([0.5, 1.5]), "from 0 to 1"),
        (lambda: benjamini_hochberg([np.nan]), "from 0 to 1"),
        (lambda: detectable_difference(float("nan")), "it is nan"),
        (lambda: detectable_difference(0.1, power=80), "power lies between 0 and 1; it is 80"),
        (lambda: rank_ranges([]), "at least one detector"),
    ]:
        with pytest.raises(OodscopeError, match=message):
            call()
