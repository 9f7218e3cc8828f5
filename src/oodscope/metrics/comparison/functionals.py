r"""Any metric in a comparison: the contributions of units to a weighted functional.

A metric that is a functional of weighted images (``Metric.value``) is evaluated again under other weights. OOD classes
that are sampled are left out one by one: the pseudo-values of the jackknife (Tukey 1958),
:math:`u_g = G\hat\theta - (G - 1)\,\hat\theta_{(-g)}`, take the place of the contributions that an AUROC has in closed
form. Images are drawn with replacement instead: a quantile such as FPR95 moves in steps, and leaving out single images
overstates its noise, while a bootstrap does not (Efron & Tibshirani 1993, section 11.7). One side is drawn at a
time, so that the two parts stay independent.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.influence import SetUnits, class_keys
from oodscope.metrics.metric import Columns, Metric, Population
from oodscope.metrics.ranking.walk import Walk
from oodscope.metrics.rejection.selective import Acceptance, Selection
from oodscope.metrics.scores import FloatArray

DRAWS = 100
"""Resamples of the images of each side: their spread is known with 99 degrees of freedom."""

_BLOCK = 2**21  # weights in a block of evaluations


def weigh_sets(
    metric: Metric,
    columns: Mapping[str, Sequence[Columns]],
    populations: Mapping[str, Population],
    class_names: Mapping[str, Sequence[str]] | None = None,
    *,
    seed: int = 0,
) -> dict[str, SetUnits]:
    """The units of any weighted metric for every detector on every set.

    Parameters
    ----------
    columns : by set the columns of each detector (see :data:`Columns`), ID images first, the same images for all.
    populations : what the classes of each set are; ``"none"`` unless said. Where they are sampled every class weighs
        the same and is a unit.
    seed : of the draws of images.
    """
    if metric.value is None:
        raise DataError(f"{metric.name} has no weighted form (Metric.value), so its noise cannot be found")
    found = {}
    for name, detectors in columns.items():
        is_ood = detectors[0]["is_ood"]
        own = detectors[0]["ood_class"][is_ood]
        sampled = populations.get(name, "none") == "sampled" and bool((own >= 0).all())
        weights = class_weights(is_ood, own) if sampled else np.ones(is_ood.size)
        known = draw_weights(weights, ~is_ood, seed, "")
        drawn = _without(weights, is_ood, own) if sampled else draw_weights(weights, is_ood, seed, name)
        table = np.concatenate([weights[None], np.ones((1, is_ood.size)), known, drawn])
        values = np.stack([evaluate(metric, each, table) for each in detectors], axis=1)
        of_id, of_ood = values[2 : 2 + len(known)], values[2 + len(known) :]
        count = len(of_ood)
        units = count * values[0] - (count - 1.0) * of_ood if sampled else sqrt(count) * of_ood
        keys = class_keys(name, own, (class_names or {}).get(name)) if sampled else None
        # the mean of B units varies as each of them over the root of B; so a resample is a unit times that root
        found[name] = SetUnits(name, values[0], values[1], sqrt(len(of_id)) * of_id, units, keys)
    return found


def class_weights(is_ood: NDArray[np.bool_], classes: NDArray[np.int64]) -> FloatArray:
    """Weights of all images under which every OOD class weighs the same, and OOD images one in the mean."""
    weights = np.ones(is_ood.size)
    sizes = np.bincount(classes)
    weights[is_ood] = classes.size / (np.count_nonzero(sizes) * sizes[classes])
    return weights


def _without(weights: FloatArray, side: NDArray[np.bool_], classes: NDArray[np.int64]) -> FloatArray:
    """The weights without each class of one side, the rest of the side scaled up to its old total."""
    numbers, index = np.unique(classes, return_inverse=True)
    rows = np.repeat(weights[None], numbers.size, axis=0)
    left = np.where(index == np.arange(numbers.size)[:, None], 0.0, weights[side])
    rows[:, side] = left * (weights[side].sum() / left.sum(axis=1, keepdims=True))
    return rows


def draw_weights(weights: FloatArray, side: NDArray[np.bool_], seed: int, name: str) -> FloatArray:
    """The weights with the images of one side drawn with replacement, the side scaled to its old total."""
    count, total = int(side.sum()), weights[side].sum()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(8, *name.encode())))
    counts = rng.multinomial(count, np.full(count, 1.0 / count), size=DRAWS)
    rows = np.repeat(weights[None], DRAWS, axis=0)
    own = counts * weights[side]
    rows[:, side] = own * (total / own.sum(axis=1, keepdims=True))
    return rows


def evaluate(metric: Metric, columns: Columns, weights: FloatArray) -> FloatArray:
    """The metric under each row of ``weights``; metrics of a ranking from one sort of the images."""
    if metric.sample is Walk and metric.of is not None and metric.positive is not None:
        block = max(1, _BLOCK // weights.shape[1])
        return np.concatenate(
            [_walked(metric, columns, weights[at : at + block]) for at in range(0, len(weights), block)]
        )
    if metric.sample is Acceptance and metric.of is not None:
        selection = Selection(columns["score"], columns["correct"])
        block = max(1, _BLOCK // weights.shape[1])
        parts = [selection.weighted(weights[at : at + block]) for at in range(0, len(weights), block)]
        return np.concatenate([np.asarray(metric.of(part)) for part in parts])
    assert metric.value is not None, "the caller has checked it"
    return np.array([metric.value(columns, row) for row in weights])


def _walked(metric: Metric, columns: Columns, weights: FloatArray) -> FloatArray:
    score, is_ood = columns["score"], columns["is_ood"]
    order = np.argsort(score, kind="stable")
    ordered, ood = score[order], is_ood[order]
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), ordered.size - 1)
    sums = {
        side: np.cumsum(np.where(ood == (side == "ood"), weights[:, order], 0.0), axis=1)[:, last]
        for side in ("id", "ood")
    }
    below = {side: np.concatenate([np.zeros((len(weights), 1)), each[:, :-1]], axis=1) for side, each in sums.items()}
    n_id, n_ood = float(sums["id"][0, -1]), float(sums["ood"][0, -1])
    if metric.positive == "id":
        walk = Walk(sums["id"], sums["ood"], below["ood"], round(n_id, 6), round(n_ood, 6))
    else:
        turned = [_left(n, part) for n, part in ((n_ood, below["ood"]), (n_id, below["id"]), (n_id, sums["id"]))]
        walk = Walk(turned[0], turned[1], turned[2], round(n_ood, 6), round(n_id, 6))
    assert metric.of is not None
    return np.asarray(metric.of(walk), dtype=np.float64)


def _left(total: float, below: FloatArray) -> FloatArray:
    """What lies above, from the top; where no weight is left, rounding must not look like an image."""
    above = (total - below)[:, ::-1]
    return np.where(above > 1e-9 * total, above, 0.0)
