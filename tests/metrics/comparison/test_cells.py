"""Tests over cells and the agreement of two studies: SciPy, slow counts, and the printed tables of DCV-ROOD."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, norm, shapiro, ttest_rel

from oodscope.base.errors import OodscopeError
from oodscope.metrics.comparison.agreement import directions, hits_and_errors, significance_counts
from oodscope.metrics.comparison.cells import PairTests, cell_tests, pair_tests
from oodscope.metrics.comparison.many_sets import signed_rank, signed_ranks
from oodscope.metrics.comparison.multiplicity import benjamini_hochberg, holm
from oodscope.metrics.comparison.paired import corrected_t
from tests.examples import examples
from tests.runs.crossval.dcv_paper import COUNTS, DETECTORS, RATES, STARS, TRUTH, P

PAIRS = np.triu_indices(8, 1)
WRONG_STARS = {
    ("tpr5", 0.0115),
    ("tpr5", 0.0141),
    ("tpr5", 0.0157),
    ("tpr5", 0.0229),
    ("tpr5", 0.0275),
    ("aupr", 0.0127),
    ("aupr", 0.0141),
    ("f1", 0.0103),
    ("f1", 0.0501),
    ("acc90", 0.1055),
}


def study(seed, detectors=4, cells=22, shift=0.02):
    """Cells that differ much, detectors that differ by a small paired shift."""
    rng = np.random.default_rng(seed)
    levels = rng.uniform(0.1, 0.9, size=cells)
    return levels + shift * np.arange(detectors)[:, None] + 0.01 * rng.normal(size=(detectors, cells))


@examples(40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([8, 22, 60]), st.booleans())
def test_many_signed_rank_tests_are_the_single_ones(seed, cells, tied):
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(6, cells))
    if tied:
        differences[::2] = differences[::2].round(1)
    found = signed_ranks(differences)
    assert found.tolist() == [signed_rank(row, 0 * row) for row in differences]


def test_a_cell_without_a_difference_is_left_out():
    differences = np.r_[0.0, np.arange(1.0, 12.0)]
    assert signed_ranks(differences[None])[0] == signed_ranks(differences[None, 1:])[0] == 2 / 2**11


@pytest.mark.parametrize("test", ["wilcoxon", "mannwhitney"])
def test_all_pairs_are_tested_as_single_ones(test):
    table = study(0)
    found = pair_tests(table, test=test)
    for a, b in combinations(range(4), 2):
        expected = signed_rank(table[a], table[b]) if test == "wilcoxon" else mannwhitneyu(table[a], table[b]).pvalue
        assert found.p[a, b] == found.p[b, a] == pytest.approx(expected, abs=1e-12)
        # later detectors have more
        assert found.direction[a, b] == -1 and found.direction[b, a] == 1
    assert (np.diag(found.p) == 1).all() and (np.diag(found.direction) == 0).all()
    np.testing.assert_array_equal(found.holm()[np.triu_indices(4, 1)], holm(found.p[np.triu_indices(4, 1)]))
    np.testing.assert_array_equal(
        found.benjamini_hochberg()[np.triu_indices(4, 1)], benjamini_hochberg(found.p[np.triu_indices(4, 1)])
    )
    assert (found.holm() == found.holm().T).all()


def test_the_direction_is_that_of_the_statistic():
    # one cell lost by much, all others won by little: signed ranks say more, the mean says less
    second = np.linspace(0.1, 0.5, 10)
    first = second + np.linspace(0.01, 0.02, 10)
    first[0] = second[0] - 0.9
    (direction,) = cell_tests(first[None], second[None]).direction
    assert direction == 1 and first.mean() < second.mean()
    assert cell_tests(second[None], second[None]).direction[0] == 0
    assert cell_tests(second[None], second[None]).p[0] == 1


def test_normal_differences_are_tested_by_t_only_if_asked():
    rng = np.random.default_rng(4)
    base = rng.uniform(size=22)
    normal, skewed = base + 0.01 + 0.02 * rng.normal(size=22), base + rng.exponential(size=22) ** 3
    assert shapiro(normal - base).pvalue > 0.05 > shapiro(skewed - base).pvalue
    both, twice = np.array([normal, skewed]), np.array([base, base])
    plain, chosen = cell_tests(both, twice), cell_tests(both, twice, auto_parametric=True)
    assert not plain.parametric.any() and chosen.parametric.tolist() == [True, False]
    assert chosen.p[0] == pytest.approx(ttest_rel(normal, base).pvalue)
    assert plain.p[0] == signed_rank(normal, base) != chosen.p[0]
    assert chosen.p[1] == plain.p[1]
    # equal values have no spread to be normal
    assert not cell_tests(base[None], base[None], auto_parametric=True).parametric.any()


def test_a_constant_shift_of_ten_cells():
    base = np.arange(10) / 7
    shifted = base + np.linspace(0.1, 0.101, 10)
    assert cell_tests(shifted[None], base[None]).p[0] == 0.001953125
    assert cell_tests((base + 0.1)[None], base[None], test="mannwhitney").p[0] == pytest.approx(0.7337, abs=5e-5)


def test_nadeau_bengio_of_five_folds():
    found = corrected_t([0.01, 0.02, 0.015, 0.005, 0.02], [0.0] * 5, test_to_train=0.25)
    assert (found.statistic, found.p) == pytest.approx((3.20131, 0.032860), abs=1e-5)
    nearly_plain = corrected_t([0.01, 0.02, 0.015, 0.005, 0.02], [0.0] * 5, test_to_train=1e-12)
    assert (nearly_plain.statistic, nearly_plain.p) == pytest.approx((4.80196, 0.008636), abs=1e-5)


# --- agreement ---


def matrix(pairs, diagonal=1.0):
    """A symmetric 8 by 8 matrix of the 28 numbers above its diagonal."""
    full = np.full((8, 8), diagonal)
    full[PAIRS] = pairs
    full.T[PAIRS] = pairs
    return full


@examples(50)
@given(st.lists(st.floats(0, 1), min_size=28, max_size=28), st.lists(st.integers(0, 10), min_size=28, max_size=28))
def test_rates_are_the_slow_ones(p, counts):
    found = hits_and_errors(matrix(p), matrix(counts, 0), 0.1)
    hits = [c for q, c in zip(p, counts) if q <= 0.1]
    errors = [c for q, c in zip(p, counts) if q > 0.1]
    assert (found.hits.total, found.hits.pairs) == (sum(hits), len(hits))
    assert (found.errors.total, found.errors.pairs) == (sum(errors), len(errors))
    assert np.isnan(found.hits.value) if not hits else found.hits.value == pytest.approx(np.mean(hits))


def test_ten_of_ten_everywhere():
    found = hits_and_errors(matrix([0.001] * 28), matrix([10] * 28, 0), 0.05)
    assert found.hits.value == 10 and np.isnan(found.errors.value) and str(found.errors) == "–"
    half = hits_and_errors(matrix([0.001] * 14 + [0.9] * 14), matrix([10] * 14 + [0] * 14, 0), 0.05)
    assert (half.hits.value, half.errors.value) == (10, 0)
    # a p of exactly alpha is significant
    assert hits_and_errors(matrix([0.05] * 28), matrix([10] * 28, 0), 0.05).hits.pairs == 28


def test_counts_and_directions():
    truth = PairTests(
        np.array([[1, 0.01, 0.2], [0.01, 1, 0.04], [0.2, 0.04, 1]]), np.array([[0, 1, 1], [-1, 0, -1], [-1, 1, 0]])
    )
    same = PairTests(truth.p, truth.direction)
    turned = PairTests(truth.p, -truth.direction)
    silent = PairTests(np.ones((3, 3)), -truth.direction)
    counts = significance_counts([same, turned, silent, same], 0.05)
    assert counts.tolist() == [[0, 3, 0], [3, 0, 3], [0, 3, 0]]
    assert significance_counts([same], 0.01).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    # hits do not see that one repetition names the loser as winner; directions do
    assert hits_and_errors(truth.p, counts, 0.05).hits.value == 3
    found = directions(truth, [same, turned, silent, same], 0.05)
    assert (found.same, found.opposite, found.silent) == (4, 2, 2) and found.share == 0.5
    assert np.isnan(directions(silent, [same], 0.05).share)


# --- the paper ---


def printed_p(metric, alpha):
    """The printed p-values; those of *relation* that table 11 lacks are taken from the signs of the counts."""
    p = P[metric]
    if metric != "auroc":
        return p
    full = np.ones((8, 8))
    full[:7, :7] = p
    full[7, :7] = full[:7, 7] = np.where(COUNTS[alpha][metric][7, :7] > 0, 0.0, 1.0)
    return full


@pytest.mark.parametrize("alpha", [0.1, 0.05])
@pytest.mark.parametrize("metric", list(RATES[0.1]))
def test_tables_7_and_8_from_the_printed_p_values_and_counts(metric, alpha):
    found = hits_and_errors(printed_p(metric, alpha), np.abs(COUNTS[alpha][metric]), alpha)
    if (metric, alpha) == ("f1", 0.1):
        # the one line that the paper's own tables contradict
        assert (str(found.hits), str(found.errors)) == ("8.8095 (185/21)", "0.8571 (6/7)")
        signs = np.where(COUNTS[0.1]["f1"] > 0, 0.0, 1.0)
        found = hits_and_errors(signs, np.abs(COUNTS[0.1]["f1"]), 0.1)
        # by its signs, a pair that is never found counts as one that does not differ: so it was printed
        never = COUNTS[0.1]["f1"][PAIRS] == 0
        assert never.sum() == 4 and (P["f1"][PAIRS][never] > 0.1).all()
    for rate, printed in zip((found.hits, found.errors), RATES[alpha][metric]):
        digits = len(printed.split(".")[1])
        shown = f"{rate.value:.{digits}f}"
        assert shown == printed or (printed == "2.0910" and shown == "2.0909")  # a rounding slip of the paper


def test_the_whole_numbers_behind_tables_7_and_8():
    found = {
        (metric, alpha): hits_and_errors(printed_p(metric, alpha), np.abs(COUNTS[alpha][metric]), alpha)
        for alpha in (0.1, 0.05)
        for metric in P
    }
    told = {key: (f"{v.hits.total}/{v.hits.pairs}", f"{v.errors.total}/{v.errors.pairs}") for key, v in found.items()}
    assert told == {
        ("tpr5", 0.1): ("207/21", "7/7"),
        ("auroc", 0.1): ("205/23", "8/5"),
        ("aupr", 0.1): ("195/22", "3/6"),
        ("f1", 0.1): ("185/21", "6/7"),
        ("acc90", 0.1): ("198/23", "8/5"),
        ("tpr5", 0.05): ("187/19", "18/9"),
        ("auroc", 0.05): ("194/21", "6/7"),
        ("aupr", 0.05): ("167/18", "17/10"),
        ("f1", 0.05): ("155/17", "23/11"),
        ("acc90", 0.05): ("168/21", "9/7"),
    }


def atoms(cells):
    """Every p that the exact signed-rank test of so many cells can give."""
    ways = np.zeros(cells * (cells + 1) // 2 + 1)
    ways[0] = 1
    for rank in range(1, cells + 1):
        ways[rank:] += ways[:-rank].copy()
    return np.minimum(2 * np.cumsum(ways) / 2.0**cells, 1)


def test_the_printed_p_values_are_those_of_signed_ranks():
    """All but two are atoms of the exact null of 22 cells; these two are normal approximations with one zero."""
    strangers = set()
    for p in P.values():
        for value in p[np.triu_indices(len(p), 1)]:
            if np.abs(atoms(22) - value).min() > 5.01e-5:
                strangers.add(float(value))
    assert strangers == {0.0157, 0.0537}
    mean, deviation = 21 * 22 / 4, np.sqrt(21 * 22 * 43 / 24)
    for total, printed in ((46, 0.0157), (60, 0.0537)):
        assert 2 * norm.cdf((total - mean) / deviation) == pytest.approx(printed, abs=5e-5)


def test_a_literal_mann_whitney_would_find_other_counts():
    """On the printed four-digit truth: 7, 1, 0, 0 and 0 significant pairs; the paper prints 19, 15 (of 21), 18, ..."""
    literal, paired, printed = {}, {}, {}
    for metric, truth in TRUTH.items():
        literal[metric] = int((pair_tests(truth.T, test="mannwhitney").p[PAIRS] <= 0.05).sum())
        paired[metric] = int((pair_tests(truth.T).p[PAIRS] <= 0.05).sum())
        printed[metric] = int((P[metric][np.triu_indices(len(P[metric]), 1)] <= 0.05).sum())
    assert literal == {"tpr5": 7, "auroc": 1, "aupr": 0, "f1": 0, "acc90": 0}
    assert printed == {"tpr5": 19, "auroc": 15, "aupr": 18, "f1": 17, "acc90": 21}
    # rounding to four digits makes ties, so the paired test does not return the printed counts either, but near them
    assert paired == {"tpr5": 20, "auroc": 19, "aupr": 15, "f1": 17, "acc90": 19}


def test_a_small_paired_shift_of_22_cells_is_seen_by_signed_ranks_only():
    """A constructed example: how table 9 can flag a detector whose two vectors nearly coincide."""
    cells = np.linspace(0.1, 0.9, 22)
    moved = cells + np.linspace(0.001, 0.002, 22)
    assert cell_tests(moved[None], cells[None]).p[0] == 2 / 2**22
    assert cell_tests(moved[None], cells[None], test="mannwhitney").p[0] > 0.8


def test_corrections_of_the_printed_p_values():
    found = {
        m: [int((adjust(p[np.triu_indices(len(p), 1)]) <= 0.05).sum()) for adjust in (holm, benjamini_hochberg)]
        for m, p in P.items()
    }
    assert found == {"tpr5": [10, 18], "auroc": [11, 15], "aupr": [12, 16], "f1": [11, 17], "acc90": [13, 20]}


def test_the_printed_stars_do_not_follow_their_legend():
    wrong = {
        (metric, float(p))
        for metric, table in P.items()
        for p, stars in zip(table[np.triu_indices(len(table), 1)], STARS[metric][np.triu_indices(len(table), 1)])
        if stars != sum(p < alpha for alpha in (0.1, 0.05, 0.01))
    }
    assert wrong == WRONG_STARS


def test_the_typed_tables_are_whole():
    assert len(DETECTORS) == 8
    for metric, table in TRUTH.items():
        assert table.shape == (21 if metric in ("auroc", "acc90") else 22, 8)
        assert (P[metric] == P[metric].T).all() and (np.diag(P[metric]) == 1).all()
        for alpha in (0.1, 0.05):
            assert (np.abs(COUNTS[alpha][metric]) == np.abs(COUNTS[alpha][metric]).T).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pair_tests(study(0), test="wilcoxn"), "unknown test over cells 'wilcoxn'.*'wilcoxon'"),
        (lambda: pair_tests(np.ones((1, 22))), "2 detectors or more"),
        (lambda: pair_tests(np.ones((3, 5))), "over 5 sets says next to nothing"),
        (lambda: hits_and_errors(np.ones((3, 3)), np.ones((4, 4)), 0.1), "square and alike"),
        (lambda: hits_and_errors(np.triu(np.ones((3, 3))), np.ones((3, 3)), 0.1), "symmetric"),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(OodscopeError, match=message):
        call()
