"""Kendall's tau against SciPy and counting, its interval against literal resampling, and the claims of a paper."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from oodscope.base.errors import DataError
from oodscope.metrics.generated.rank_agreement import kendall, kendall_interval, kendall_within
from tests.examples import examples
from tests.metrics.generated.raising_the_bar import ARCHITECTURES, AUROC, ECE, SETS, SHIFTS, TABLE_1, VITS, column

tied = st.integers(2, 20).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 5).map(float), min_size=n, max_size=n) for _ in range(2)])
)


def vary(*columns):
    return all(len(set(values)) > 1 for values in columns)


class TestTau:
    @examples(60)
    @given(tied)
    def test_is_scipys_with_ties(self, columns):
        assume(vary(*columns))
        assert kendall(*columns) == pytest.approx(kendalltau(*columns).statistic, abs=1e-12)

    @examples(30)
    @given(tied)
    def test_order_alone_counts(self, columns):
        assume(vary(*columns))
        a, b = map(np.array, columns)
        tau = kendall(a, b)
        assert -1 - 1e-12 <= tau <= 1 + 1e-12
        assert kendall(b, a) == pytest.approx(tau)
        assert kendall(np.exp(a), 3 * b - 7) == pytest.approx(tau)
        assert kendall(a, -b) == pytest.approx(-tau)
        assert kendall(a, a) == pytest.approx(1)

    def test_by_hand(self):
        """Of the three pairs one is ordered oppositely; a tie in one column leaves its pair out below the line."""
        assert kendall([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)
        assert kendall([1, 2, 3], [1, 2, 2]) == pytest.approx(2 / np.sqrt(6))


class TestWithin:
    @examples(30)
    @given(tied, st.integers(2, 4))
    def test_against_counting_pairs(self, columns, count):
        a, b = columns
        groups = [f"g{row % count}" for row in range(len(a))]
        agree = in_a = in_b = 0
        for i, j in itertools.combinations(range(len(a)), 2):
            if groups[i] == groups[j]:
                agree += np.sign(a[i] - a[j]) * np.sign(b[i] - b[j])
                in_a += a[i] != a[j]
                in_b += b[i] != b[j]
        assume(in_a and in_b)
        found = kendall_within(a, b, groups)
        assert found.pooled == pytest.approx(agree / np.sqrt(in_a * in_b))
        assert list(found.groups) == list(dict.fromkeys(groups))
        for name, tau in found.groups.items():
            own = [row for row, group in enumerate(groups) if group == name]
            mine, other = [a[row] for row in own], [b[row] for row in own]
            if vary(mine, other):
                assert tau == pytest.approx(kendalltau(mine, other).statistic)
            else:
                assert np.isnan(tau)

    def test_networks_can_hide_that_detectors_are_ranked_oppositely(self):
        a, b = [1, 2, 3, 11, 12, 13], [3, 2, 1, 13, 12, 11]
        found = kendall_within(a, b, ["small"] * 3 + ["large"] * 3)
        assert (found.pooled, dict(found.groups)) == (-1, {"small": -1, "large": -1})
        assert kendall(a, b) == pytest.approx(0.2)


def slow_replicates(a, b, clusters, seed, count):
    """One pair at a time: rows of one copy of a cluster, and rows of copies of different clusters."""
    names = list(dict.fromkeys(clusters))
    drawn = np.random.default_rng(seed).multinomial(len(names), [1 / len(names)] * len(names), size=count)
    for counts in drawn:
        rows = [(row, name, copy) for row, name in enumerate(clusters) for copy in range(counts[names.index(name)])]
        agree = in_a = in_b = 0.0
        for (i, one, copy), (j, other, its) in itertools.combinations(rows, 2):
            if one == other and copy != its:
                continue
            weight = 1.0 if one == other else len(names) / (len(names) - 1)
            agree += weight * np.sign(a[i] - a[j]) * np.sign(b[i] - b[j])
            in_a += weight * (a[i] != a[j])
            in_b += weight * (b[i] != b[j])
        yield agree / np.sqrt(in_a * in_b) if in_a and in_b else np.nan


class TestInterval:
    @pytest.mark.parametrize("clusters", [None, "aabbccddee", "abcdeabcda"])
    def test_against_resampling_pair_by_pair(self, clusters):
        a, b = [1, 2, 3, 3, 5, 6, 7, 8, 9, 9], [2, 1, 3, 5, 4, 6, 9, 8, 7, 7]
        slow = list(slow_replicates(a, b, clusters or range(10), 5, 100))
        found = kendall_interval(a, b, clusters, level=0.8, seed=5, replicates=100)
        assert (found.low, found.high) == pytest.approx(tuple(np.nanquantile(slow, [0.1, 0.9])))
        assert (found.level, found.method) == (0.8, f"bootstrap-{'rows' if clusters is None else 'clusters'}-100")

    def test_rows_drawn_twice_are_ties_to_scipy(self):
        """With rows as clusters of one, a replicate is what SciPy finds in the resampled columns."""
        a, b = np.array([1, 2, 3, 3, 5, 6, 7, 8, 9, 9]), np.array([2, 1, 3, 5, 4, 6, 9, 8, 7, 7])
        drawn = np.random.default_rng(5).multinomial(10, [0.1] * 10, size=200)
        scipys = [kendalltau(np.repeat(a, counts), np.repeat(b, counts)).statistic for counts in drawn]
        found = kendall_interval(a, b, level=0.8, seed=5, replicates=200)
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(scipys, [0.1, 0.9])))

    def test_replicates_without_an_order_are_left_out(self):
        a, b = [0, 0, 0, 0, 0, 0, 0, 1], [1, 2, 3, 4, 5, 6, 7, 8]
        slow = np.array(list(slow_replicates(a, b, range(8), 0, 100)))
        assert 10 < np.isnan(slow).sum() < 60
        found = kendall_interval(a, b, replicates=100)
        assert (found.low, found.high) == pytest.approx(tuple(np.nanquantile(slow, [0.025, 0.975])))

    def test_clusters_do_not_change_the_shares_of_pairs(self):
        """All pairs within agree and all pairs between do not: replicates scatter around the sample's own tau."""
        a = np.array([10 * network + row for network in range(8) for row in range(6)])
        b = np.array([-10 * network + row for network in range(8) for row in range(6)])
        found = kendall_interval(a, b, [row // 6 for row in range(48)], level=0.02)
        assert found.low == pytest.approx(kendall(a, b), abs=0.02)

    def test_covers_the_truth(self):
        rng, true = np.random.default_rng(0), 2 / np.pi * np.arcsin(0.8)
        hits = 0
        for seed in range(200):
            a, b = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=16).T
            found = kendall_interval(a, b, seed=seed, replicates=400)
            hits += found.low <= true <= found.high
        assert 0.9 < hits / 200 <= 1

    def test_full_agreement_is_a_point(self):
        found = kendall_interval(range(8), range(8))
        assert (found.low, found.high) == (1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kendall_interval(range(7), range(7)), "over 7 rows says next to nothing .it needs 8.; add detectors"),
        (lambda: kendall_interval(range(8), range(8), "aabbccdd"), "4 clusters have too little spread .* needs 5"),
        (lambda: kendall_interval(range(8), range(8), "aabb"), "every row needs its cluster: there are 8 rows and 4"),
        (lambda: kendall_interval(range(8), range(8), level=95), "confidence level lies between 0 and 1"),
        (lambda: kendall_interval(range(8), [1] * 8), "needs two columns that vary"),
        (lambda: kendall([1, 1], [1, 2]), "needs two columns that vary"),
        (lambda: kendall([1, 2], [1, 2, 3]), "they have 2 and 3 rows"),
        (lambda: kendall([1], [1]), "an order needs at least 2 rows"),
        (lambda: kendall([1, np.nan], [1, 2]), "the first column: 1 of 2 are NaN"),
        (lambda: kendall_within([1, 2], [1, 2], ["a", "b"]), "all rows .of a group. are equal"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(DataError, match=message):
        call()


class TestThePaper:
    """What "Raising the Bar" claims of its tables, recomputed from the tables."""

    def test_the_tables_are_whole(self):
        assert TABLE_1.shape == (32, 5)
        assert {name: ARCHITECTURES.count(name) for name in ARCHITECTURES} == {
            **dict.fromkeys(VITS, 5),
            "RN50": 6,
            "WRN-50-2": 6,
        }

    def test_claim_1_lower_than_every_set_but_species_has_five_exceptions(self):
        generated = column("N-ImageNet")
        not_lower = {
            name: [row for row, mine, real in zip(AUROC, generated, column(name)) if mine >= real] for name in SETS[:4]
        }
        assert not_lower["ImageNet-O"] == [
            ("RN50", "SC"),
            ("RN50", "SE"),
            ("RN50", "Maha"),
            ("WRN-50-2", "SC"),
            ("WRN-50-2", "SE"),
        ]
        assert not_lower["OpenImage-O"] == not_lower["Texture"] == []
        assert (column("Species") < generated).sum() == 32

    def test_claim_2_the_order_is_preserved_between_networks_and_less_so_among_transformers(self):
        generated, vit = column("N-ImageNet"), np.isin(ARCHITECTURES, VITS)
        taus = {name: kendall(generated, column(name)) for name in SETS[:4]}
        assert {name: round(tau, 3) for name, tau in taus.items()} == {
            "ImageNet-O": 0.898,
            "Species": 0.838,
            "OpenImage-O": 0.894,
            "Texture": 0.910,
        }
        among = [round(kendall(generated[vit], column(name)[vit]), 3) for name in SETS[:4]]
        assert (min(among), max(among)) == (0.755, 0.797)

    @pytest.mark.parametrize("name", SETS[:4])
    def test_within_an_architecture_the_order_is_the_same(self, name):
        found = kendall_within(column("N-ImageNet"), column(name), ARCHITECTURES)
        assert len(found.groups) == 6
        assert [round(tau, 2) for tau in (found.pooled, *found.groups.values())] == [1.00] * 7

    @pytest.mark.parametrize("name", SETS[:4])
    def test_other_networks_are_less_certain_than_other_rows(self, name):
        generated, real = column("N-ImageNet"), column(name)
        by_row = kendall_interval(generated, real)
        by_network = kendall_interval(generated, real, ARCHITECTURES)
        assert by_row.low < kendall(generated, real) < by_row.high
        assert by_row.low > 0.6
        assert by_network.low < by_row.low

    def test_the_error_of_the_shifted_set_is_exceeded_four_times(self):
        exceeded = [
            (model, shift)
            for model, errors in ECE.items()
            for shift, error in zip(SHIFTS[:-1], errors)
            if error > errors[-1]
        ]
        assert exceeded == [("ViT-B-16", "R"), ("ViT-B-32", "A"), ("ViT-B-32", "R"), ("ViT-L-32", "R")]
