r"""Rates at a quantile (FPR95, TPR5): what each image contributes, in closed form but for one slope.

A rate counts the images of one side that lie beyond a quantile of the other. With A the counted side, B the side whose
share q sets the threshold t, the rate is near to a sum of contributions,

.. math:: \hat F_A(t) \approx \frac1{n_A} \sum_{i \in A} 1\{i \text{ accepted}\}
          - \frac{r(t)}{n_B} \sum_{j \in B} \bigl(1\{j \text{ accepted}\} - q\bigr), \qquad
          r = \frac{f_A}{f_B},

r being the ratio of the densities at the threshold, the slope of the ROC curve there (Hsieh & Turnbull, Annals of
Statistics 1996). A bootstrap finds that ratio implicitly and badly: its standard error is off by a part of order
:math:`n^{-1/4}`, 12 % at 800 images (Hall & Martin 1988), and to be safe among 1,770 pairs costs power. Here
the ratio is the odds of a logistic regression of the side on the score, local to the threshold (Loader, Annals of
Statistics 1996) and linear in normal scores of the pooled ranks: right for normal scores of one variance, and unchanged
by any monotone change of the scores. The regression knows the variance :math:`\omega` of its logarithm; the variance of
the rate, which holds the square of the ratio, is then known with :math:`\nu = 1 / 2\omega` degrees of freedom.
"""

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

from oodscope.metrics.comparison.functionals import class_weights, evaluate
from oodscope.metrics.comparison.influence import SetUnits, class_keys
from oodscope.metrics.metric import Columns, Metric, Population
from oodscope.metrics.ranking.readings import FprAtTpr, TprAtFpr
from oodscope.metrics.scores import FloatArray

BANDWIDTH = 0.5
"""How far the regression looks to either side of the threshold, in standard deviations of the normal scores."""

_ROUNDS, _RIDGE, _REACH, _EPS = 15, 1e-3, 4.0, 1e-9


def is_rate(metric: Metric) -> bool:
    """Whether a metric is a rate at a quantile."""
    return isinstance(metric.of, FprAtTpr | TprAtFpr) and metric.positive is not None


def rate_sets(
    metric: Metric,
    columns: Mapping[str, Sequence[Columns]],
    populations: Mapping[str, Population],
    class_names: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, SetUnits]:
    """The units of a rate for every detector on every set; see :func:`~.functionals.weigh_sets` for the arguments."""
    found = {}
    for name, detectors in columns.items():
        is_ood = detectors[0]["is_ood"]
        own = detectors[0]["ood_class"][is_ood]
        sampled = populations.get(name, "none") == "sampled" and bool((own >= 0).all())
        weights = class_weights(is_ood, own) if sampled else np.ones(is_ood.size)
        table = np.stack([weights, np.ones(is_ood.size)])
        values = np.stack([evaluate(metric, each, table) for each in detectors], axis=1)
        made, spread = [], []
        for each, value in zip(detectors, values[0]):
            units, noise = _contributions(metric, each["score"], is_ood, weights, value)
            made.append(units)
            spread.append(noise)
        # a variance with the square of a ratio that is off by a share is off by twice that share
        freedom = 0.5 / max(float(np.mean(spread)), _EPS)
        of_id, of_ood = (np.stack([each[side] for each in made], axis=1) for side in (~is_ood, is_ood))
        if sampled:
            index = np.unique(own, return_inverse=True)[1]
            sizes = np.bincount(index)[:, None]
            of_ood = np.stack([np.bincount(index, column) for column in of_ood.T], axis=1) / sizes
        keys = class_keys(name, own, (class_names or {}).get(name)) if sampled else None
        known = (freedom, inf) if _reference_is_id(metric) else (inf, freedom)
        found[name] = SetUnits(name, values[0], values[1], of_id, of_ood, keys, *known)
    return found


def _reference_is_id(metric: Metric) -> bool:
    """Whether a share of the ID images sets the threshold."""
    return isinstance(metric.of, FprAtTpr) == (metric.positive == "id")


def _contributions(
    metric: Metric, score: FloatArray, is_ood: NDArray[np.bool_], weights: FloatArray, value: float
) -> tuple[FloatArray, float]:
    """Of every image, so that the (weighted) mean of either side is the value; and how well the ratio is known."""
    # accepted images lie below the threshold, whichever side is the positive one
    turned = score if metric.positive == "id" else -score
    reading = metric.of
    assert isinstance(reading, FprAtTpr | TprAtFpr), "asked before"
    reference = ~is_ood if _reference_is_id(metric) else is_ood
    threshold = _threshold(turned, np.where(reference, weights, 0.0), reading)
    accepted = np.asarray(turned <= threshold, dtype=np.float64)
    share = np.average(accepted[reference], weights=weights[reference])
    ratio, noise = density_ratio(turned, ~reference, weights, threshold)
    return np.where(reference, value - ratio * (accepted - share), accepted), noise


def _threshold(turned: FloatArray, weights: FloatArray, reading: FprAtTpr | TprAtFpr) -> float:
    """The largest accepted score; below all scores where nothing is."""
    order = np.argsort(turned, kind="stable")
    ordered, sums = turned[order], np.cumsum(weights[order])
    total = sums[-1]
    if isinstance(reading, FprAtTpr):
        return float(ordered[np.searchsorted(sums, reading.tpr * total - _EPS * total)])
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), ordered.size - 1)
    kept = np.searchsorted(sums[last], reading.fpr * total + _EPS * total, "right")
    return float(ordered[last[kept - 1]]) if kept else -np.inf


def density_ratio(
    score: FloatArray, counted: NDArray[np.bool_], weights: FloatArray, at: float, bandwidth: float = BANDWIDTH
) -> tuple[float, float]:
    """The density of the counted images over that of the others, at a score, and the variance of its logarithm.

    Logistic regression, linear in the normal scores of the pooled ranks, with normal weights around the place. Where
    nothing is accepted the ratio is 0.
    """
    if not np.isfinite(at):
        return 0.0, 0.0
    place = ndtri((rankdata(score) - 0.5) / score.size)
    away = place - place[np.flatnonzero(score == at)[0]]
    near = np.abs(away) < _REACH * bandwidth
    away, sides = away[near], counted[near].astype(np.float64)
    kernel = weights[near] * np.exp(-0.5 * (away / bandwidth) ** 2)
    most = np.log(score.size)
    level, tilt = float(np.clip(logit(np.average(sides, weights=kernel)), -most, most)), 0.0
    ridge = np.diag([0.0, _RIDGE * kernel.sum()])
    both = np.stack([np.ones_like(away), away])
    for _ in range(_ROUNDS):
        odds = expit(level + tilt * away)
        spread = kernel * odds * (1.0 - odds) + _EPS
        bend = (both * spread) @ both.T + ridge
        step = np.linalg.solve(bend, both @ (kernel * (sides - odds)) - ridge @ [level, tilt])
        step = np.clip(step, -2.0, 2.0)
        level, tilt = float(np.clip(level + step[0], -most, most)), tilt + float(step[1])
        if np.abs(step).max() < 1e-8:
            break
    inner = (both * (kernel * spread)) @ both.T
    back = np.linalg.inv(bend)
    totals = [float(weights[side].sum()) for side in (~counted, counted)]
    return float(np.exp(level) * totals[0] / totals[1]), float((back @ inner @ back)[0, 0])
