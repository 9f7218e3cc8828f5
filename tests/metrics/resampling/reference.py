"""The bootstrap of version 0.1, one replicate at a time: the slow reference of the present one.

How often each image was drawn, summed in the order of the one sort, takes the place of the counts of the ranking; each
replicate is one :class:`Walk` over the steps of the sample.
"""

import numpy as np

from oodscope.metrics.catalog import METRICS
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import Walk
from oodscope.metrics.resampling.bootstrap import Bootstrap
from oodscope.metrics.resampling.draws import resamples


def reference_bootstrap(id_scores, ood_sets, *, seed, replicates, metrics):
    values = {metric: {name: np.empty(replicates) for name in ood_sets} for metric in metrics}
    points = {metric: {} for metric in metrics}
    for name, ood in ood_sets.items():
        ranking = Ranking(id_scores, ood)
        orders = np.argsort(id_scores), np.argsort(ood)
        draws = resamples(len(id_scores), seed=seed), resamples(len(ood), seed=seed, ood_set=name)
        for r in range(replicates):
            id_sums, ood_sums = (
                np.append(0, np.cumsum(np.bincount(next(rows), minlength=len(order))[order]))
                for rows, order in zip(draws, orders, strict=True)
            )
            walks = {side: replicate(ranking.walk(side), side, id_sums, ood_sums) for side in ("id", "ood")}
            for metric in metrics:
                values[metric][name][r] = METRICS[metric].of(walks[METRICS[metric].positive])
        for metric in metrics:
            points[metric][name] = float(METRICS[metric].of(ranking.walk(METRICS[metric].positive)))
    return Bootstrap(values, points)


def replicate(walk, side, id_sums, ood_sums):
    """The walk of one replicate; running sums lie in ascending order of the scores."""
    own, other = (ood_sums, id_sums) if side == "ood" else (id_sums, ood_sums)

    def read(sums, met, n):
        if side == "ood":
            return (sums[-1] - sums[(n - met).astype(int)]).astype(float)
        return sums[met.astype(int)].astype(float)

    return Walk(
        read(own, walk.tp, walk.n_positive),
        read(other, walk.fp, walk.n_negative),
        read(other, walk.fp_before, walk.n_negative),
        walk.n_positive,
        walk.n_negative,
    )
