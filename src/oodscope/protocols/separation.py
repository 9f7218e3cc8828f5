"""How well scores tell negatives from each OOD set: the arithmetic that protocols share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import MEAN, METRICS
from oodscope.metrics.interval import Interval, wilson_interval
from oodscope.metrics.ranking.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.resampling.bootstrap import Bootstrap
from oodscope.metrics.resampling.resampling import bootstrap_each
from oodscope.protocols.classes import class_ends
from oodscope.protocols.ranks import Ranks, group_ranks
from oodscope.protocols.samples import GROUPS, Separation, separate
from oodscope.results.measurement import Measurement
from oodscope.results.measurements import Measurements
from oodscope.results.scoretable import ScoreTable

LEVEL = 0.95


def measure_separation(scores: ScoreTable, protocol: str, negatives: Sequence[str]) -> Measurements:
    """Ranking metrics of every detector, per set and as group means, each with its interval.

    AUROC has a second interval, over classes, and its group means the ranks that paired tests allow.

    Parameters
    ----------
    negatives : the roles whose images count as in-distribution.
    """
    if not any(scores.sets(group) for group in GROUPS):
        raise DataError(f"{protocol} needs at least one near or far set to tell from the in-distribution images")
    separations = separate(scores, negatives)
    draws = bootstrap_each(
        {detector: (each.negative, each.foreign) for detector, each in separations.items()},
        seed=int(scores.metadata["seed"] or 0),
    )
    ranks = group_ranks(separations, {name: scores.metadata["detectors"][name]["tuning"] for name in separations})
    rows: list[Measurement] = []
    for detector, separation in separations.items():
        shared = {**run_context(scores), **detector_context(scores, detector), "protocol": protocol}
        rows += _detector_rows(separation, draws[detector], shared, ranks[detector])
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
            **_ends(float(correct[mask].mean()), wilson_interval(int(correct[mask].sum()), int(mask.sum()), LEVEL)),
        )
        for group, name, mask in masks
    )


def _detector_rows(
    separation: Separation, draws: Bootstrap, shared: Mapping[str, Any], ranks: Mapping[str, Ranks]
) -> Iterator[Measurement]:
    rankings = {name: Ranking(separation.negative, values) for name, values in separation.foreign.items()}
    for group, names in separation.groups.items():
        chosen = [rankings[name] for name in names]
        shown = {**shared, "group": group, "n_id": chosen[0].n_id}
        for metric in METRICS:
            for name, ranking in zip(names, chosen):
                extra = class_ends(separation, [name], LEVEL) if metric == "auroc" else {}
                interval = auroc_interval(ranking, LEVEL) if metric == "auroc" else draws.interval(metric, name, LEVEL)
                row = {**shown, "set": name, "metric": metric, "n_ood": ranking.n_ood}
                yield Measurement(**row, **_ends(draws.point(metric, [name]), interval), **extra)
            extra = {**class_ends(separation, names, LEVEL), **ranks[group]} if metric == "auroc" else {}
            interval = (
                mean_auroc_interval(chosen, LEVEL) if metric == "auroc" else draws.mean_interval(metric, names, LEVEL)
            )
            row = {**shown, "set": MEAN, "metric": metric, "n_ood": sum(ranking.n_ood for ranking in chosen)}
            yield Measurement(**row, **_ends(draws.point(metric, names), interval), **extra)


def _ends(value: float, interval: Interval) -> dict[str, Any]:
    return {
        "value": value,
        "low": interval.low,
        "high": interval.high,
        "interval": interval.method,
        "level": interval.level,
    }


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
