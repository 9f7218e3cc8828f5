"""How well scores tell negatives from each OOD set: the arithmetic that protocols share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics import (
    METRICS,
    Interval,
    Ranking,
    auroc_interval,
    bootstrap,
    mean_auroc_interval,
    point_metrics,
    wilson_interval,
)
from oodscope.results import MEAN, Measurement, Measurements, ScoreTable

GROUPS = ("near", "far")
LEVEL = 0.95


def measure_separation(scores: ScoreTable, protocol: str, negatives: Sequence[str]) -> Measurements:
    """Ranking metrics of every detector, per set and as group means, each with its interval.

    Parameters
    ----------
    negatives : the roles whose images count as in-distribution.
    """
    if not any(scores.sets(group) for group in GROUPS):
        raise DataError(f"{protocol} needs at least one near or far set to tell from the in-distribution images")
    rows: list[Measurement] = []
    for detector in scores.detectors:
        shared = {**run_context(scores), **detector_context(scores, detector), "protocol": protocol}
        negative = np.concatenate([scores.scores(detector, role=role) for role in negatives])
        rows += _detector_rows(scores, detector, negative, shared)
    return Measurements(rows)


def measure_accuracy(scores: ScoreTable, protocol: str, negatives: Sequence[str]) -> Measurements:
    """The classifier's accuracy on each in-distribution set and, where there are several, pooled."""
    frame = scores.frame
    correct = (frame["label"] == frame["prediction"]).to_numpy()
    named = [(role, name) for role in negatives for name in scores.sets(role)]
    masks: list[tuple[str, str, NDArray[np.bool_]]] = [
        ("id" if role == "id_test" else role, name, (frame["set"] == name).to_numpy()) for role, name in named
    ]
    if len(masks) > 1:
        masks.append(("id", "pooled", np.logical_or.reduce([mask for _, _, mask in masks])))
    return Measurements(
        Measurement(
            **run_context(scores),
            protocol=protocol,
            set=name,
            group=group,
            metric="accuracy",
            n_id=int(mask.sum()),
            **_proportion(int(correct[mask].sum()), int(mask.sum())),
        )
        for group, name, mask in masks
    )


def _detector_rows(
    scores: ScoreTable, detector: str, negative: NDArray[np.float64], shared: Mapping[str, Any]
) -> Iterator[Measurement]:
    groups = {group: scores.sets(group) for group in GROUPS if scores.sets(group)}
    foreign = {name: scores.scores(detector, set=name) for names in groups.values() for name in names}
    rankings = {name: Ranking(negative, values) for name, values in foreign.items()}
    points = {name: point_metrics(ranking) for name, ranking in rankings.items()}
    draws = bootstrap(negative, foreign, seed=int(shared["seed"] or 0))
    for group, names in groups.items():
        for metric in METRICS:
            for name in names:
                interval = (
                    auroc_interval(rankings[name], LEVEL) if metric == "auroc" else draws.interval(metric, name, LEVEL)
                )
                yield _row(shared, group, name, metric, points[name][metric], interval, rankings[name])
            mean = float(np.mean([points[name][metric] for name in names]))
            interval = (
                mean_auroc_interval([rankings[name] for name in names], LEVEL)
                if metric == "auroc"
                else draws.mean_interval(metric, names, LEVEL)
            )
            yield _row(shared, group, MEAN, metric, mean, interval, *(rankings[name] for name in names))


def _row(
    shared: Mapping[str, Any],
    group: str,
    name: str,
    metric: str,
    value: float,
    interval: Interval,
    *rankings: Ranking,
) -> Measurement:
    return Measurement(
        **shared,
        group=group,
        set=name,
        metric=metric,
        value=value,
        low=interval.low,
        high=interval.high,
        interval=interval.method,
        level=interval.level,
        n_id=rankings[0].n_id,
        n_ood=sum(ranking.n_ood for ranking in rankings),
    )


def run_context(scores: ScoreTable) -> dict[str, Any]:
    """What every row of the run says of it."""
    known = scores.metadata
    return {
        "run": known["run"],
        "benchmark": known["benchmark"],
        "benchmark_version": known["benchmark_version"],
        "model": known["model"],
        "recipe": known.get("recipe", ""),
        "seed": known["seed"],
    }


def detector_context(scores: ScoreTable, detector: str) -> dict[str, Any]:
    """What every row of a detector says of it: parameters, tuning, costs."""
    known = scores.metadata["detectors"][detector]
    return {
        "detector": detector,
        "params": known["params"],
        "tuning": known["tuning"],
        "fit_seconds": known["fit_seconds"],
        "microseconds_per_image": known["microseconds_per_image"],
        "peak_mib": known["peak_mib"],
    }


def _proportion(successes: int, trials: int) -> dict[str, Any]:
    interval = wilson_interval(successes, trials, LEVEL)
    return {
        "value": successes / trials,
        "low": interval.low,
        "high": interval.high,
        "interval": interval.method,
        "level": interval.level,
    }
