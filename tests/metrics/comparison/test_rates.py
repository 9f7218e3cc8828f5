"""Rates at a quantile: contributions of images against the metric itself, its noise, and the density ratio."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from oodscope.metrics.catalog import METRICS
from oodscope.metrics.comparison.influence import join_sets
from oodscope.metrics.comparison.rates import density_ratio, is_rate, rate_sets
from oodscope.metrics.comparison.simultaneous import compare_pairs
from oodscope.metrics.metric import columns_of
from oodscope.metrics.ranking.ranking import Ranking

RATES = ("fpr95_id_positive", "fpr95_ood_positive", "tpr5_id_positive", "tpr5_ood_positive")


def units(metric, known, ood, classes=None, population="none"):
    columns = [columns_of(a, b, ood_class=classes) for a, b in zip(np.atleast_2d(known), np.atleast_2d(ood))]
    return rate_sets(METRICS[metric], {"o": columns}, {"o": population})["o"]


def test_rates_are_known_by_what_they_read():
    assert all(is_rate(METRICS[name]) for name in RATES)
    assert not any(is_rate(METRICS[name]) for name in ("auroc", "aupr_in", "der95_val_correct"))


@pytest.mark.parametrize("metric", RATES)
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_id=st.integers(2, 60),
    n_ood=st.integers(2, 60),
    gap=st.floats(-3, 30),
    decimals=st.sampled_from([0, 1, 12]),
)
def test_values_are_the_metric_and_sides_average_to_it(metric, seed, n_id, n_ood, gap, decimals):
    rng = np.random.default_rng(seed)
    known, ood = rng.normal(size=n_id).round(decimals), (gap + rng.normal(size=n_ood)).round(decimals)
    found = units(metric, known, ood)
    ranking = Ranking(known, ood)
    name, positive = metric.split("_")[0], metric.split("_")[1]
    wanted = ranking.fpr_at_tpr(0.95, positive=positive) if name == "fpr95" else ranking.tpr_at_fpr(positive=positive)
    assert found.values[0] == found.plain[0] == pytest.approx(wanted)
    assert found.of_id.mean() == pytest.approx(wanted) and found.of_ood.mean() == pytest.approx(wanted)
    assert np.isfinite(found.of_id).all() and np.isfinite(found.of_ood).all()


@pytest.mark.parametrize("metric", RATES)
def test_the_noise_is_that_of_new_images_and_known_within_a_tenth(metric):
    rng = np.random.default_rng(1)
    drawn = [join_sets([units(metric, rng.normal(size=600), 1.0 + rng.normal(size=600))]) for _ in range(150)]
    errors = np.array([each.noise(0).error for each in drawn])
    spread = np.std([each.values[0] for each in drawn])
    # 150 draws know a spread within 6 % of itself; the error of each is off by less than a bootstrap's 12 %
    assert np.mean(errors) == pytest.approx(spread, rel=0.2)
    assert np.std(errors) / np.mean(errors) < 0.09


def test_a_monotone_change_of_the_scores_changes_nothing():
    rng = np.random.default_rng(2)
    known, ood = rng.normal(size=300), 1.0 + rng.normal(size=200)
    plain, bent = (units("fpr95_id_positive", change(known), change(ood)) for change in (np.asarray, np.exp))
    assert np.allclose(plain.of_id, bent.of_id) and np.array_equal(plain.of_ood, bent.of_ood)


def test_the_ratio_is_that_of_the_densities():
    rng = np.random.default_rng(3)
    score = np.r_[rng.normal(size=20_000), 1.0 + rng.normal(size=5_000)]
    counted = np.arange(score.size) >= 20_000
    at = np.sort(score)[np.searchsorted(np.sort(score), 1.2)]
    truth = norm.pdf(at - 1.0) / norm.pdf(at)
    assert density_ratio(score, counted, np.ones(score.size), at)[0] == pytest.approx(truth, rel=0.05)
    # OOD images that weigh double are the same density
    assert density_ratio(score, counted, 1.0 + counted, at)[0] == pytest.approx(truth, rel=0.05)


def test_the_ratio_knows_its_own_noise():
    rng = np.random.default_rng(6)
    found = []
    for _ in range(200):
        known, ood = rng.normal(size=400), 1.0 + rng.normal(size=400)
        at = np.sort(known)[379]
        found.append(density_ratio(np.r_[known, ood], np.arange(800) >= 400, np.ones(800), at))
    ratio, noise = np.array(found).T
    assert 0.6 < np.sqrt(noise.mean()) / np.std(np.log(ratio)) < 1.5


def test_where_one_side_is_alone_the_ratio_is_finite():
    known, ood = np.arange(50.0), 1000.0 + np.arange(50.0)
    found = units("fpr95_id_positive", known, ood)
    assert found.values[0] == 0.0 and np.abs(found.of_id).max() < 0.5
    assert density_ratio(known, known > 100, np.ones(50), -np.inf) == (0.0, 0.0)


@pytest.mark.parametrize("metric", ["fpr95_id_positive", "fpr95_ood_positive"])
def test_sampled_classes_weigh_the_same_and_are_the_units(metric):
    rng = np.random.default_rng(4)
    classes = np.repeat(np.arange(6), [100, 10, 10, 10, 10, 10])
    known, ood = rng.normal(size=200), np.repeat([3.0, 0, 0, 0, 0, 0], [100, 10, 10, 10, 10, 10]) + rng.normal(size=150)
    found = units(metric, known, ood, classes, "sampled")
    assert found.of_ood.shape == (6, 1) and found.classes is not None
    assert found.of_ood.mean() == pytest.approx(found.values[0], abs=0.02)
    assert found.values[0] > found.plain[0] + 0.05, "the one easy class has most of the images"


def test_sixty_detectors_are_told_apart_by_fpr95_and_equal_ones_are_not():
    """The finding: from eight detectors on no difference could be seen, however large."""
    rng = np.random.default_rng(5)
    shared = [rng.normal(size=800) for _ in range(2)]
    known, ood = (0.8 * each + 0.6 * rng.normal(size=(60, 800)) for each in shared)
    ood += 1.0
    ood[0] += 0.9
    found = compare_pairs(join_sets([units("fpr95_id_positive", known, ood)]), replicates=499)
    of_first = found.first == 0
    assert (found.p_adjusted[of_first] < 0.05).mean() > 0.9
    assert (found.p_adjusted[~of_first] < 0.05).mean() < 0.01
