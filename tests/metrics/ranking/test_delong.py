"""DeLong intervals against their definition over all pairs, brute-force resampling and simulated coverage."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import norm

from oodscope.base.errors import OodscopeError
from oodscope.metrics.ranking.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from tests.examples import examples

Z = norm.ppf(0.975)


def wins(id_scores, ood_scores):
    """[i, j]: 1 if OOD j scores above ID i, 1/2 if they tie."""
    id_column = np.asarray(id_scores)[:, None]
    return (ood_scores > id_column) + 0.5 * (ood_scores == id_column)


def slow_mean_and_variance(id_scores, ood_sets):
    """The mean AUROC and its DeLong variance, from every pair."""
    pairs = [wins(id_scores, ood) for ood in ood_sets]
    by_id_image = np.mean([p.mean(axis=1) for p in pairs], axis=0)
    variance = by_id_image.var(ddof=1) / len(id_scores)
    variance += sum(p.mean(axis=0).var(ddof=1) / p.shape[1] for p in pairs) / len(pairs) ** 2
    return np.mean([p.mean() for p in pairs]), variance


def logit_ends(mean, variance):
    centre, reach = np.log(mean / (1 - mean)), Z * np.sqrt(variance) / (mean * (1 - mean))
    return 1 / (1 + np.exp(-(centre - reach))), 1 / (1 + np.exp(-(centre + reach)))


def variance_of(interval):
    """The variance that an interval was made from."""
    low, high = (np.log(end / (1 - end)) for end in (interval.low, interval.high))
    mean = 1 / (1 + np.exp(-(low + high) / 2))
    return ((high - low) / 2 / Z * mean * (1 - mean)) ** 2


side = st.lists(st.integers(0, 9).map(float), min_size=2, max_size=30).map(np.array)


@examples(200)
@given(side, st.lists(side, min_size=1, max_size=4))
def test_interval_is_that_of_all_pairs(id_scores, ood_sets):
    assume(all(0 < wins(id_scores, ood).mean() < 1 for ood in ood_sets))
    mean, variance = slow_mean_and_variance(id_scores, ood_sets)
    interval = mean_auroc_interval([Ranking(id_scores, ood) for ood in ood_sets])
    assert (interval.low, interval.high) == pytest.approx(logit_ends(mean, variance), abs=1e-9)
    assert interval.method == "delong-logit"
    assert interval.level == 0.95


def test_one_set_is_a_mean_of_one():
    rng = np.random.default_rng(0)
    ranking = Ranking(rng.normal(size=40), rng.normal(1, 1, size=30))
    assert auroc_interval(ranking, 0.9) == mean_auroc_interval([ranking], 0.9)
    assert auroc_interval(ranking, 0.9).low > auroc_interval(ranking, 0.99).low


def test_variance_is_that_of_brute_force_resampling():
    rng = np.random.default_rng(1)
    id_scores, near, far = rng.normal(size=60), rng.normal(0.8, 1, size=50), rng.normal(2, 1.5, size=80)
    pairs = [wins(id_scores, near), wins(id_scores, far)]
    means = []
    for _ in range(4000):
        rows = rng.integers(60, size=60)
        means.append(np.mean([p[rows][:, rng.integers(p.shape[1], size=p.shape[1])].mean() for p in pairs]))
    joint = mean_auroc_interval([Ranking(id_scores, near), Ranking(id_scores, far)])
    assert variance_of(joint) == pytest.approx(np.var(means), rel=0.1)


def test_ignoring_the_shared_id_sample_understates_a_mean():
    rng = np.random.default_rng(2)
    id_scores = rng.normal(size=500)
    rankings = [Ranking(id_scores, rng.normal(1, 1, size=500)) for _ in range(2)]
    joint = variance_of(mean_auroc_interval(rankings))
    as_if_independent = sum(variance_of(auroc_interval(r)) for r in rankings) / 4
    assert np.sqrt(as_if_independent / joint) < 0.9


def coverage(aurocs, n_id, n_ood, repetitions, make):
    """Share of simulated Gaussian samples whose interval holds the true mean AUROC."""
    rng = np.random.default_rng(3)
    shifts = norm.ppf(aurocs) * np.sqrt(2)
    held = 0
    for _ in range(repetitions):
        id_scores = rng.normal(size=n_id)
        low, high = make([Ranking(id_scores, rng.normal(s, 1, size=n_ood)) for s in shifts])
        held += low <= np.mean(aurocs) <= high
    return held / repetitions


def logit_form(rankings):
    interval = mean_auroc_interval(rankings)
    return interval.low, interval.high


def plain_form(rankings):
    auroc = rankings[0].auroc
    if auroc in (0, 1):
        return auroc, auroc
    reach = Z * np.sqrt(variance_of(auroc_interval(rankings[0])))
    return auroc - reach, auroc + reach


def test_logit_form_covers_where_the_plain_form_does_not():
    assert coverage([0.99], 50, 50, 1500, plain_form) < 0.85
    assert 0.92 < coverage([0.99], 50, 50, 1500, logit_form) < 0.98


@pytest.mark.parametrize(
    ("aurocs", "n_id", "n_ood"), [([0.999], 50, 50), ([0.95], 4, 4), ([0.99], 1, 50), ([0.999, 0.95], 50, 50)]
)
def test_samples_that_are_often_separated_are_covered(aurocs, n_id, n_ood):
    assert coverage(aurocs, n_id, n_ood, 1000, logit_form) > 0.93


def test_perfect_separation_has_the_exact_bound_of_the_smaller_sample():
    right, wrong = (
        Ranking(np.arange(10.0), np.arange(10.0, 40.0)),
        Ranking(np.arange(30.0, 40.0), np.arange(30.0)),
    )
    bound = 0.025 ** (1 / 10)
    assert auroc_interval(right).low == pytest.approx(bound)
    assert auroc_interval(right).high == 1
    assert auroc_interval(wrong).low == 0
    assert auroc_interval(wrong).high == pytest.approx(1 - bound)
    assert auroc_interval(right).method == "exact-separation"
    fewer = Ranking(np.arange(10.0), [100.0, 101.0])
    assert mean_auroc_interval([right, fewer]).low == pytest.approx(0.025 ** (1 / 2))


def test_a_mean_of_a_perfect_and_a_reversed_set_is_not_a_point():
    id_scores = np.arange(10.0)
    interval = mean_auroc_interval([Ranking(id_scores, id_scores + 100), Ranking(id_scores, id_scores - 100)])
    variance = 2 * (10.5 * 0.5 / 11**2 / 10) / 4
    assert variance_of(interval) == pytest.approx(variance)


def test_equal_scores_have_a_point_and_single_images_a_wide_interval():
    constant = auroc_interval(Ranking(np.ones(5), np.ones(8)))
    assert (constant.low, constant.high) == (0.5, 0.5)
    single = auroc_interval(Ranking([1.0], [0.0, 2.0, 3.0]))
    assert single.low < 0.05
    assert single.high > 0.95


def test_misuse_is_named():
    ranking = Ranking([0.0, 1.0], [0.5, 2.0])
    with pytest.raises(OodscopeError, match="at least one OOD set"):
        mean_auroc_interval([])
    with pytest.raises(OodscopeError, match="their ID scores differ"):
        mean_auroc_interval([ranking, Ranking([0.0, 1.5], [0.5, 2.0])])
    with pytest.raises(OodscopeError, match=r"such as 0.95; it is 95"):
        auroc_interval(ranking, 95)
