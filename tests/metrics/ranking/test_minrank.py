"""Ranks of outliers: the oracle by hand, slow references, and the paper's own table."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from oodscope.base.errors import DataError
from oodscope.metrics.ranking.minrank import min_rank_interval, outlier_ranks, source_interval, standard_error
from oodscope.metrics.ranking.ranking import Ranking
from tests.examples import examples

scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)


def slow_min_rank(id_scores, outliers):
    return min(sum(score < outlier for score in id_scores) for outlier in outliers)


class TestRanks:
    def test_the_oracle_by_hand(self):
        ranks = outlier_ranks([0.1, 0.2, 0.3, 0.4], [0.25, 0.4, 0.9])
        assert ranks.below.tolist() == [2, 3, 4]
        assert ranks.min_rank == 2
        assert ranks.auroc == pytest.approx(9.5 / 12)

    @examples(60)
    @given(scores, scores)
    def test_against_counting_and_against_the_ranking(self, id_scores, outliers):
        ranks = outlier_ranks(id_scores, outliers)
        assert ranks.min_rank == slow_min_rank(id_scores, outliers)
        assert ranks.auroc == pytest.approx(ranks.mid.mean() / len(id_scores))
        assert ranks.auroc == pytest.approx(Ranking(id_scores, outliers).auroc)

    @examples(40)
    @given(scores, scores, scores)
    def test_more_chains_never_raise_it(self, id_scores, some, others):
        assert outlier_ranks(id_scores, some + others).min_rank <= outlier_ranks(id_scores, some).min_rank

    def test_runs_are_equal_blocks(self):
        ranks = outlier_ranks(range(100), [9.5, 3.5, 50.5, 40.5, 7.5, 8.5, 0.5])
        assert ranks.min_ranks(3).tolist() == [4, 41, 8]  # the seventh chain belongs to no run
        assert standard_error(ranks.min_ranks(3)) == pytest.approx(np.std([4, 41, 8], ddof=1) / np.sqrt(3))
        assert standard_error([7]) == 0.0
        with pytest.raises(DataError, match="8 runs need at least as many outliers; there are 7"):
            ranks.min_ranks(8)


class TestIntervals:
    def test_of_the_minimum_against_every_resample(self):
        """All 4^4 resamples of four outliers, one by one."""
        below = np.array([30, 10, 20, 40])
        ranks = outlier_ranks(range(100), below - 0.5)
        minima = np.sort([below[list(draw)].min() for draw in itertools.product(range(4), repeat=4)])
        for level in (0.2, 0.5, 0.8, 0.95):
            interval = min_rank_interval(ranks, level)
            tails = [np.quantile(minima, tail, method="inverted_cdf") for tail in ((1 - level) / 2, (1 + level) / 2)]
            assert [interval.low, interval.high] == tails

    def test_of_the_auroc_is_that_of_a_mean(self):
        rng = np.random.default_rng(0)
        ranks = outlier_ranks(rng.normal(size=500), rng.normal(1, 1, size=300))
        interval = source_interval(ranks, seed=3, ood_set="x")
        reach = 1.96 * ranks.mid.std() / 500 / np.sqrt(300)
        assert interval.low < ranks.auroc < interval.high
        assert interval.high - interval.low == pytest.approx(2 * reach, rel=0.15)
        assert interval == source_interval(ranks, seed=3, ood_set="x")


PAPER = {  # Table 2, SVHN: AUROC clean, affine, GAN; the strong detectors
    "NAE": (0.935, 0.755, 0.005), "GOOD": (0.943, 0.565, 0.515), "ACET": (0.966, 0.753, 0.425),
    "CEDA": (0.987, 0.636, 0.435), "SSD": (0.989, 0.631, 0.479), "MD": (0.993, 0.747, 0.169),
    "SNGP": (0.994, 0.761, 0.488), "ATOM": (0.996, 0.908, 0.616), "OE": (0.997, 0.751, 0.620),
    "ROWL": (0.997, 0.675, 0.659), "CSI": (0.998, 0.940, 0.893),
}  # fmt: skip


def test_the_papers_clean_order_says_more_of_the_gan_than_of_affine():
    clean, affine, gan = zip(*PAPER.values())
    assert spearmanr(clean, gan).statistic == pytest.approx(0.806, abs=0.0005)
    assert spearmanr(clean, affine).statistic == pytest.approx(0.419, abs=0.0005)
