"""Rank tests over sets against the atoms of the exact null, SciPy and published tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, mannwhitneyu, rankdata, wilcoxon

from oodscope.base.errors import OodscopeError
from oodscope.metrics.comparison.many_sets import critical_difference, friedman, signed_rank
from tests.examples import examples

ATOMS = {  # smaller rank sum of 22 signed ranks: two-sided p, as published to four digits
    60: 0.0301,
    79: 0.1289,
    82: 0.1560,
    71: 0.0738,
    52: 0.0141,
    65: 0.0462,
    57: 0.0229,
    103: 0.4628,
    111: 0.6327,
    48: 0.0093,
    83: 0.1659,
    87: 0.2099,
    68: 0.0587,
    59: 0.0275,
    50: 0.0115,
    37: 0.0025,
    41: 0.0042,
    34: 0.0017,
}
NEMENYI = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
"""q at 0.05 of Demšar (2006), table 5a."""


def with_rank_sum(n, total):
    """Differences of distinct size, the negative ones of rank sum ``total``."""
    signs = np.ones(n)
    for rank in range(n, 0, -1):
        if rank <= total:
            signs[rank - 1], total = -1, total - rank
    return signs * np.arange(1, n + 1) / 1000


@pytest.mark.parametrize("total", ATOMS)
def test_atoms_of_the_exact_null_of_22_cells(total):
    differences = with_rank_sum(22, total)
    assert signed_rank(0.5 + differences, np.full(22, 0.5)) == pytest.approx(ATOMS[total], abs=5e-5)
    assert signed_rank(np.full(22, 0.5), 0.5 + differences) == pytest.approx(ATOMS[total], abs=5e-5)


def test_a_constant_shift_of_ten_sets():
    base = np.arange(10) / 7
    shifted = base + np.linspace(0.1, 0.101, 10)
    assert signed_rank(shifted, base) == 2 / 1024 == 0.001953125
    assert mannwhitneyu(base + 0.1, base).pvalue == pytest.approx(0.7337, abs=5e-5)


@examples(50)
@given(st.lists(st.integers(-5, 5), min_size=8, max_size=20))
def test_with_ties_and_zeros_it_is_wilcoxons_normal_form(differences):
    d = np.array(differences, dtype=float)
    found = signed_rank(d, 0 * d)
    kept = d[d != 0]
    if not kept.size:
        assert found == 1
    elif np.unique(np.abs(kept)).size == kept.size:
        assert found == wilcoxon(kept, method="exact").pvalue
    else:
        assert found == wilcoxon(d, zero_method="wilcox", method="approx").pvalue
    assert signed_rank(0 * d, d) == found


def table(seed, detectors=5, sets=12):
    rng = np.random.default_rng(seed)
    return (
        0.8
        + 0.05 * rng.normal(size=sets)
        + 0.03 * rng.normal(size=(detectors, 1))
        + 0.02 * rng.normal(size=(detectors, sets))
    )


def test_friedman_is_scipys():
    values = table(0)
    assert friedman(values) == friedmanchisquare(*values).pvalue
    assert friedman(np.ones((3, 8))) == 1


@pytest.mark.parametrize("k", [k for k in NEMENYI if k > 2])
def test_critical_differences_use_the_published_constants(k):
    found = critical_difference(table(1, detectors=k, sets=14))
    assert found.difference == pytest.approx(NEMENYI[k] * np.sqrt(k * (k + 1) / (6 * 14)), abs=1e-3)


def test_ranks_and_bars_of_a_diagram():
    values = table(2)
    up, down = critical_difference(values), critical_difference(-values, higher_is_better=False)
    assert up == down
    np.testing.assert_allclose(up.average_ranks, rankdata(-values, axis=0).mean(axis=1))
    assert sum(up.average_ranks) == pytest.approx(5 * 6 / 2)
    wider = critical_difference(values, alpha=0.01)
    assert wider.difference > up.difference


@examples(40)
@given(st.lists(st.floats(1, 8), min_size=2, max_size=8), st.floats(0.1, 4))
def test_bars_join_exactly_the_pairs_that_are_not_told_apart(ranks, difference):
    from oodscope.metrics.comparison.many_sets import _bars

    bars = _bars(np.array(ranks), difference)
    joined = {frozenset((a, b)) for bar in bars for a in bar for b in bar if a != b}
    for a in range(len(ranks)):
        for b in range(a):
            low, high = sorted((ranks[a], ranks[b]))
            assert (frozenset((a, b)) in joined) == (high < low + difference)
    for one in bars:
        assert len(one) > 1
        assert not any(set(one) < set(other) for other in bars)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: signed_rank(np.arange(7.0), np.zeros(7)), "over 7 sets says next to nothing .it needs 8.; compare on"),
        (lambda: friedman(np.ones((3, 6))), "Friedman's test over 6 sets"),
        (lambda: critical_difference(np.ones((4, 2))), "a critical difference over 2 sets"),
        (lambda: friedman(np.ones((2, 9))), "compare two with signed_rank"),
        (lambda: friedman(np.ones(9)), "one number for every set; the shape is"),
        (lambda: friedman([[1.0] * 8, [1.0] * 8, [1.0] * 7]), "one number for every set"),
        (lambda: signed_rank(np.full(9, np.nan), np.zeros(9)), "finite everywhere"),
        (lambda: critical_difference(np.ones((3, 9)), alpha=5), "alpha lies between 0 and 1; it is 5"),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(OodscopeError, match=message):
        call()
