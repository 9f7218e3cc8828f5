"""Stratified bootstrap of every point metric, and of their means over OOD sets, from shared draws.

ID and OOD images are resampled separately, each with replacement to its own size (Efron & Tibshirani 1993,
ch. 8), and an interval is the percentile interval of the replicates. A replicate is never sorted: how often
each image was drawn, summed in the order of the one sort, takes the place of the counts of the ranking.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.ranking import Ranking
from oodscope.metrics.scores import FloatArray, IntArray, check_scores

_BLOCK = 2**18  # counts in a block of replicates: 2 MB of float64, which a core's cache holds


@dataclass(frozen=True)
class Bootstrap:
    """The replicates of each metric on each OOD set.

    Replicate r used one ID draw for all sets, and the same draws for any detector bootstrapped with the same
    seed, set names and sizes: means over sets and differences of detectors are taken replicate by replicate.

    Parameters
    ----------
    values : metric name, then set name, then one value per replicate.
    """

    values: Mapping[str, Mapping[str, FloatArray]]

    def interval(self, metric: str, ood_set: str, level: float = 0.95) -> Interval:
        """Percentile interval of one metric on one OOD set."""
        return percentile_interval(self._replicates(metric, ood_set), level)

    def mean_interval(self, metric: str, ood_sets: Sequence[str], level: float = 0.95) -> Interval:
        """Percentile interval of the unweighted mean of one metric over several OOD sets (near, far)."""
        if not ood_sets:
            raise DataError(f"a mean of {metric} needs at least one OOD set")
        mean = np.mean([self._replicates(metric, ood_set) for ood_set in ood_sets], axis=0)
        return percentile_interval(mean, level)

    def _replicates(self, metric: str, ood_set: str) -> FloatArray:
        if metric not in self.values:
            raise UnknownNameError("metric", metric, self.values)
        if ood_set not in self.values[metric]:
            raise UnknownNameError("OOD set", ood_set, self.values[metric])
        return self.values[metric][ood_set]


def bootstrap(
    id_scores: ArrayLike, ood_sets: Mapping[str, ArrayLike], *, seed: int, replicates: int = 1000
) -> Bootstrap:
    """Replicates of every metric of ``METRICS`` on every OOD set, the ID draw shared by the sets.

    Parameters
    ----------
    id_scores : one score per ID image, larger = more OOD.
    ood_sets : name and scores of each OOD set. The name takes part in the seed, so that sets of equal size
        are drawn independently and the draws of a set do not depend on which others stand beside it.
    seed : of all draws; see :func:`resamples`.
    replicates : with 1,000 the standard error of an end of a 95 % interval is about 2 % of its width.
    """
    if replicates < 1 or not ood_sets:
        has = f"{replicates} and {len(ood_sets)}"
        raise DataError(f"a bootstrap needs at least one replicate and one OOD set; it has {has}")
    id_checked = check_scores(id_scores, "ID scores")
    ood_checked = {name: check_scores(scores, f"{name} scores") for name, scores in ood_sets.items()}
    rankings = {name: Ranking(id_checked, scores) for name, scores in ood_checked.items()}
    id_draws = _SortedDraws(id_checked, seed, None)
    ood_draws = {name: _SortedDraws(scores, seed, name) for name, scores in ood_checked.items()}
    values = {metric: {name: np.empty(replicates) for name in ood_sets} for metric in METRICS}
    rows = max(1, _BLOCK // max(ranking.n_id + ranking.n_ood for ranking in rankings.values()))
    for start in range(0, replicates, rows):
        stop = min(start + rows, replicates)
        id_heads = id_draws.heads(stop - start)
        for name, ranking in rankings.items():
            block = _block_metrics(ranking, id_heads, ood_draws[name].heads(stop - start))
            for metric, column in block.items():
                values[metric][name][start:stop] = column
    return Bootstrap(values)


def resamples(n: int, *, seed: int, ood_set: str | None = None) -> Iterator[IntArray]:
    """Endless draws of n rows out of n, with replacement: one array of row numbers for each replicate.

    They depend on nothing but ``n``, ``seed`` and the name of the OOD set (``None``: the ID sample), so that
    any other statistic of the same images can be resampled in step with the ranking metrics.
    """
    key = (0,) if ood_set is None else (1, *ood_set.encode())
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    while True:
        yield rng.integers(n, size=n)


def percentile_interval(replicates: FloatArray, level: float = 0.95) -> Interval:
    """The middle ``level`` of the replicates of a stratified bootstrap."""
    check_level(level)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    return Interval(float(low), float(high), level, f"bootstrap-stratified-{replicates.size}")


class _SortedDraws:
    """The resamples of one sample, told as counts in ascending order of its scores."""

    def __init__(self, scores: FloatArray, seed: int, ood_set: str | None) -> None:
        self._order = np.argsort(scores)
        self._draws = resamples(scores.size, seed=seed, ood_set=ood_set)

    def heads(self, rows: int) -> FloatArray:
        """``[r, k]``: the draws of the next ``rows`` replicates among the k lowest scores, k = 0 ... n."""
        n = self._order.size
        # A byte holds a count: of 256 images or more, one is drawn 256 times with odds below n / 256!.
        counts = np.empty((rows, n), dtype=np.uint8)
        for row, draw in enumerate(islice(self._draws, rows)):
            counts[row] = np.bincount(draw, minlength=n)
        heads = np.zeros((rows, n + 1), dtype=np.int32)
        np.cumsum(counts[:, self._order], axis=1, out=heads[:, 1:])
        return heads.astype(np.float64)


def _block_metrics(ranking: Ranking, id_heads: FloatArray, ood_heads: FloatArray) -> dict[str, FloatArray]:
    """Every metric of a block of replicates, from the counts of their draws in the order of the scores."""
    walks = {
        "id": ranking.walk("id").resampled(id_heads, ood_heads),
        "ood": ranking.walk("ood").resampled(_from_top(ood_heads), _from_top(id_heads)),
    }
    return {metric: info.of(walks[info.positive]) for metric, info in METRICS.items()}


def _from_top(heads: FloatArray) -> FloatArray:
    """The draws among the k highest scores, from those among the k lowest."""
    return heads[:, -1:] - heads[:, ::-1]
