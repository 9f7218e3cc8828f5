r"""MinRank: where the most ID-like outlier stands among the in-distribution images.

The score of one outlier is given as its rank among the sorted ID test scores: the number of ID images that look more
in-distribution than it does. A search for the worst outlier asks for the smallest rank, the mean rank is an AUROC:

.. math::
   \mathrm{MinRank} = \min_i \#\{j : f(x^{id}_j) < f(x_i)\}, \qquad
   \mathrm{AUROC} = \frac{1}{n_{ood}\, n_{id}} \sum_i r_i,

with :math:`r_i` the rank of outlier i in which a tie counts half. So ranks kept outlier by outlier say everything, and
what other source images would have given is a resampling of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.resampling.bootstrap import bca_interval
from oodscope.metrics.resampling.draws import resamples
from oodscope.metrics.scores import FloatArray, IntArray, check_scores

REPLICATES = 1000


@dataclass(frozen=True)
class OutlierRanks:
    """The rank of each outlier among the ID test scores, in the order of the outliers.

    Parameters
    ----------
    below : ID scores strictly below each outlier's: 0 if nothing looks more in-distribution, ``n_id`` at best.
    mid : the same with ties counted half.
    n_id : ID test images.
    """

    below: IntArray
    mid: FloatArray
    n_id: int

    @property
    def auroc(self) -> float:
        """Chance that an outlier scores above an ID image, a tie counting half."""
        return float(self.mid.mean()) / self.n_id

    @property
    def min_rank(self) -> int:
        """Rank of the most ID-like outlier."""
        return int(self.below.min())

    def min_ranks(self, runs: int) -> IntArray:
        """MinRank of each of ``runs`` runs: equal blocks of consecutive outliers; a remainder is left out.

        MinRank falls with the number of outliers, so only runs of one length compare.
        """
        length = len(self.below) // runs if runs > 0 else 0
        if length == 0:
            raise DataError(f"{runs} runs need at least as many outliers; there are {len(self.below)}")
        smallest: IntArray = self.below[: runs * length].reshape(runs, length).min(axis=1)
        return smallest


def outlier_ranks(id_scores: ArrayLike, outlier_scores: ArrayLike) -> OutlierRanks:
    """Rank outliers among ID test images; larger score = more OOD."""
    ordered = np.sort(check_scores(id_scores, "ID test scores"))
    outliers = check_scores(outlier_scores, "outlier scores")
    below, up_to = (ordered.searchsorted(outliers, side) for side in ("left", "right"))
    return OutlierRanks(below.astype(np.int64), (below + up_to) / 2.0, ordered.size)


def mean_ranks(repeats: Sequence[OutlierRanks]) -> OutlierRanks:
    """Ranks averaged outlier by outlier over repeated searches: their mean is the mean AUROC of the searches.

    ``below`` is that of the first: a smallest rank is one of a single search.
    """
    return OutlierRanks(repeats[0].below, np.mean([each.mid for each in repeats], axis=0), repeats[0].n_id)


def source_interval(ranks: OutlierRanks, level: float = 0.95, *, seed: int = 0, ood_set: str = "") -> Interval:
    """Interval of the AUROC for other source images, the ID test images being held as they are.

    A replicate draws source images with replacement, and its AUROC is the mean of their ranks; ends by
    :func:`bca_interval`. Two detectors are attacked with different images, so their intervals say
    nothing about a paired difference.
    """
    draws = islice(resamples(len(ranks.mid), seed=seed, ood_set=ood_set), REPLICATES)
    replicates = np.array([ranks.mid[draw].mean() for draw in draws]) / ranks.n_id
    return bca_interval(replicates, ranks.auroc, level)


def min_rank_interval(ranks: OutlierRanks, level: float = 0.95) -> Interval:
    r"""The middle ``level`` of the bootstrap law of MinRank over source images, without drawing.

    A resample of n misses the k smallest ranks with probability :math:`(1 - k/n)^n`, so its minimum is an order
    statistic with a known law. The lower end is the MinRank itself unless ``level`` is small: no resample can show
    what a worse outlier, not yet found, would have scored.
    """
    check_level(level)
    ordered, n = np.sort(ranks.below), len(ranks.below)
    above = (1.0 - np.arange(1, n + 1) / n) ** n
    low, high = (int(np.argmax(above <= tail)) for tail in ((1.0 + level) / 2.0, (1.0 - level) / 2.0))
    return Interval(float(ordered[low]), float(ordered[high]), level, "bootstrap-exact")


def standard_error(values: ArrayLike) -> float:
    """Standard error of the mean of several runs; 0 for one run, of which no spread is known."""
    runs = check_scores(values, "the values of the runs")
    return float(runs.std(ddof=1)) / sqrt(runs.size) if runs.size > 1 else 0.0
