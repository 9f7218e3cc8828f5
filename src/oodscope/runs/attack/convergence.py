"""How much a longer search would still take off: what the last doublings of the budget took, and what is to come."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from oodscope.generation.search.result import SearchResult
from oodscope.metrics.interval import Interval
from oodscope.metrics.ranking.minrank import REPLICATES, outlier_ranks
from oodscope.metrics.resampling.draws import resamples
from oodscope.metrics.scores import FloatArray

DOUBLINGS = 3
"""Seen before the end of the budget, and looked ahead beyond it: eight times the budget."""


@dataclass(frozen=True)
class Convergence:
    r"""The end of the curve of AUROC against budget, and its continuation.

    With the falls :math:`d_1, d_2, d_3` of the AUROC over the last three doublings of the budget, the next three are
    continued in two ways: each takes the share :math:`q = \sqrt{d_3/d_1} \le 1` of the one before, or each is smaller
    than the one before by :math:`\delta = (d_1 - d_3)/2`, down to 0.

    .. math:: \mathrm{AUROC}(8B) = \mathrm{AUROC}(B) - d_3 (q + q^2 + q^3) \quad\text{or}\quad
              \mathrm{AUROC}(B) - \sum_{k=1}^3 \max(0, d_3 - k\delta)

    The first falls too far where a search nears its floor, the second stops too early where it crosses barriers. The
    value is the mean of both, the interval reaches from the lower end of the first to the upper end of the second, each
    resampled over source images, so that it holds the noise of images and of their chains.

    Parameters
    ----------
    fall : :math:`d_3`, and its interval.
    eightfold : AUROC expected at eight times the budget, and its interval.
    """

    fall: float
    fall_interval: Interval
    eightfold: float
    eightfold_interval: Interval


def convergence(
    results: Sequence[SearchResult], id_test: FloatArray, *, level: float = 0.95, seed: int = 0
) -> Convergence | None:
    """Of one search, or of several with seeds of their own, whose ranks are averaged image by image.

    None where the budget was not doubled three times.
    """
    budgets = list(results[0].budgets)
    wanted = [budgets[-1] / 2**power for power in range(DOUBLINGS, -1, -1)]
    # halves of odd budgets are rounded down: the nearest point of the curve, within a tenth
    places = [int(np.argmin([abs(np.log(each / want)) for each in budgets])) for want in wanted]
    if len(set(places)) < len(places) or any(abs(np.log(budgets[p] / w)) > 0.2 for p, w in zip(places, wanted)):
        return None
    curves = np.stack([np.asarray(each.at_budget, dtype=np.float64)[places] for each in results])
    ranks = np.stack([[outlier_ranks(id_test, row).mid for row in each] for each in curves]).mean(axis=0) / len(id_test)
    fall, steep, flat = continued(ranks.mean(axis=1))
    draws = islice(resamples(ranks.shape[1], seed=seed, ood_set="convergence"), REPLICATES)
    replicates = np.array([continued(ranks[:, draw].mean(axis=1)) for draw in draws])
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2], axis=0)
    method = "bootstrap-percentile"
    return Convergence(
        fall,
        Interval(float(low[0]), float(high[0]), level, method),
        (steep + flat) / 2,
        Interval(float(low[1]), float(high[2]), level, method),
    )


def continued(aurocs: FloatArray) -> tuple[float, float, float]:
    """The last fall, and the AUROC at eight times the budget if falls shrink by a share, or by a step."""
    first, *_, last = -np.diff(aurocs)
    ahead, steps = max(float(last), 0.0), range(1, DOUBLINGS + 1)
    ratio = min(1.0, float(np.sqrt(ahead / first))) if first > 0 else 1.0
    step = max(0.0, (float(first) - ahead) / 2)
    steep = sum(ahead * ratio**number for number in steps)
    flat = sum(max(0.0, ahead - number * step) for number in steps)
    now = float(aurocs[-1])
    return float(last), max(0.0, now - steep), max(0.0, now - flat)
