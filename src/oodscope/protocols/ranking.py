"""How well scores separate negatives from each OOD set: the arithmetic that protocols share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import RANKING
from oodscope.metrics.comparison.influence import placed_images
from oodscope.metrics.interval import NO_INTERVAL, REPLICATES, Interval, Intervals, wilson_interval
from oodscope.metrics.metric import MEAN, Metric
from oodscope.metrics.ranking.clusters import logit_interval, sampling_noise
from oodscope.metrics.ranking.delong import mean_auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import Walk
from oodscope.metrics.resampling.bootstrap import Bootstrap
from oodscope.metrics.resampling.resampling import bootstrap_each, bootstrap_values
from oodscope.protocols.base import Protocol
from oodscope.protocols.separation import GROUPS, Groups, Separation, place_all, separate
from oodscope.protocols.statements import Statements, rank_fields
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable


def class_fields(statements: Statements, names: Sequence[str], level: float) -> list[dict[str, Any]]:
    """For each detector the fields ``class_value``, ``class_low`` and ``class_high`` of a measurement.

    None where nothing can be said of other OOD classes (see :meth:`Statements.refusal`). Perfect separation has a value
    and no interval: classes have no spread to learn from.
    """
    count = len(statements.separations)
    if statements.refusal(names):
        return [{} for _ in range(count)]
    estimates = statements.classes(names)
    found: list[dict[str, Any]] = []
    for detector, value in enumerate(estimates.values.tolist()):
        ends = logit_interval(value, estimates.noise(detector), level)
        interval = {} if ends is None else {"class_low": ends[0], "class_high": ends[1]}
        found.append({"class_value": value, **interval})
    return found


def standard_errors(scores: ScoreTable, negatives: Sequence[str] = ("id_test",)) -> pd.DataFrame:
    """The standard error of each AUROC if other images, other OOD classes, or other classes on both sides were drawn.

    One row per detector and OOD set that has classes: ``image``, ``ood_class``, ``both_classes``, the number of
    OOD classes, and ``ratio`` = ``ood_class / image``. A ratio of 2 says that DeLong's interval, which knows of
    images only, is half as wide as a claim about other classes needs.
    """
    rows = []
    for detector, separation in separate(scores, negatives).items():
        for name, classes in separation.ood_classes.items():
            placed = separation.placements([name])
            by_class = {name: classes}
            image = sampling_noise(placed).error
            ood_class = sampling_noise(placed, ood_classes=by_class).error
            rows.append(
                {
                    "detector": detector,
                    "set": name,
                    "auroc": placed.mean,
                    "classes": len(set(classes.tolist())),
                    "image": image,
                    "ood_class": ood_class,
                    "both_classes": sampling_noise(
                        placed, id_classes=separation.id_classes, ood_classes=by_class
                    ).error,
                    "ratio": ood_class / image if image > 0.0 else float("nan"),
                }
            )
    return pd.DataFrame(rows)


Ranks = dict[str, int]
"""The fields of a measurement that ranks fill; empty where nothing can be tested."""


def group_ranks(statements: Statements, tracks: Mapping[str, str]) -> dict[str, dict[str, Ranks]]:
    """For each detector and group its ranks among the detectors of its tuning track, and whether it may be best.

    By images (*these classes*) and, where the group allows it, by classes (*other OOD classes*); see
    :func:`rank_intervals` and :func:`may_be_best`. A detector alone in its track has no rank, and none has one where a
    sample is a single image.
    """
    separations = statements.separations
    order = list(separations)
    found: dict[str, dict[str, Ranks]] = {
        name: {group: {} for group in each.groups} for name, each in separations.items()
    }
    for track in dict.fromkeys(tracks.values()):
        rivals = [name for name in order if tracks[name] == track]
        if len(rivals) < 2 or not separations[rivals[0]].testable:
            continue
        rows = [order.index(name) for name in rivals]
        for group, names in separations[rivals[0]].groups.items():
            placed = placed_images([separations[rival].placements(names) for rival in rivals])
            fields = rank_fields(placed, higher=True)
            if not statements.refusal(names):
                wider = rank_fields(statements.classes(names).take(rows), higher=True, prefix="class_")
                fields = [{**one, **other} for one, other in zip(fields, wider)]
            for rival, own in zip(rivals, fields):
                found[rival][group] = own
    return found


LEVEL = 0.95


def measure_separation(
    scores: ScoreTable,
    protocol: str,
    negatives: Sequence[str],
    metrics: Sequence[Metric] = RANKING,
    groups: Groups = GROUPS,
) -> Measurements:
    """Ranking metrics of every detector, per set and as group means, each with its interval.

    AUROC has a second interval, over classes, and its group means the ranks that paired tests allow.

    Parameters
    ----------
    negatives : the roles whose images count as in-distribution.
    metrics : of a walk down the ranking, or weighted functionals of plain columns (``Metric.value``).
    groups : the OOD sets that count, and whose mean is taken.
    """
    roles = list(dict.fromkeys(role for each in groups.values() for role in each))
    if not any(scores.sets(role) for role in roles):
        wanted = " or ".join(roles)
        raise DataError(f"{protocol} needs at least one {wanted} set to separate from the in-distribution images")
    separations = separate(scores, negatives, groups)
    intervals = scores.context.intervals
    if intervals != "none":
        place_all(separations)
    # the interval of an AUROC needs no replicates
    resampled = [metric for metric in metrics if metric.name != "auroc"]
    draws = resample(separations, resampled, seed=scores.context.seed or 0, replicates=REPLICATES[intervals])
    ranks: dict[str, dict[str, Ranks]] = {}
    wider: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    if intervals != "none":
        statements = Statements(separations)
        ranks = group_ranks(statements, {name: scores.context.detectors[name].tuning for name in separations})
        wider = _class_columns(statements)
    rows: list[Measurement] = []
    for number, (detector, separation) in enumerate(separations.items()):
        shared = {**scores.context.row(detector), "protocol": protocol}
        own = {column: fields[number] for column, fields in wider.items()}
        rows += _detector_rows(separation, draws[detector], shared, ranks.get(detector, {}), own, metrics, intervals)
    return Measurements(rows)


def _class_columns(statements: Statements) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """The fields of every set and of every group, by the sets that are taken together."""
    groups = next(iter(statements.separations.values())).groups.values()
    columns = {tuple(each) for names in groups for each in (*([name] for name in names), names)}
    return {column: class_fields(statements, column, LEVEL) for column in columns}


def rank_metrics(scores: ScoreTable, protocol: Protocol) -> Measurements:
    """The metrics of a protocol that ranks images, per set and as group means, and the accuracy of the classifier."""
    return measure_accuracy(scores, protocol.name, protocol.negatives) + measure_separation(
        scores, protocol.name, protocol.negatives, protocol.metrics, protocol.groups
    )


def resample(
    separations: Mapping[str, Separation], metrics: Sequence[Metric], *, seed: int, replicates: int = REPLICATES["full"]
) -> dict[str, Bootstrap]:
    """Bootstrap replicates of every metric for every detector, from draws that all of them share.

    Without replicates the bootstraps hold the values of the samples alone.
    """
    walked = [metric.name for metric in metrics if metric.sample is Walk]
    weighed = [metric for metric in metrics if metric.sample is not Walk]
    found = {detector: Bootstrap({}, {}) for detector in separations}
    if walked:
        samples = {detector: (each.negative, each.ood) for detector, each in separations.items()}
        found = bootstrap_each(samples, seed=seed, metrics=walked, replicates=replicates)
    if weighed:
        columns = {detector: each.columns() for detector, each in separations.items()}
        more = bootstrap_values(columns, weighed, seed=seed, replicates=replicates)
        found = {
            detector: Bootstrap({**found[detector].values, **each.values}, {**found[detector].points, **each.points})
            for detector, each in more.items()
        }
    return found


def measure_accuracy(scores: ScoreTable, protocol: str, negatives: Sequence[str]) -> Measurements:
    """The classifier's accuracy on each in-distribution set and, where there are several, pooled.

    Sets without labels or without predictions have none.
    """
    frame = scores.frame
    correct = (frame["label"] == frame["prediction"]).to_numpy()
    named = [(role, name) for role in negatives for name in scores.sets(role) if scores.classified(name)]
    masks: list[tuple[str, str, NDArray[np.bool_]]] = [
        ("id" if role == "id_test" else role, name, (frame["set"] == name).to_numpy()) for role, name in named
    ]
    if len(masks) > 1:
        masks.append(("id", "pooled", np.logical_or.reduce([mask for _, _, mask in masks])))
    return Measurements(
        Measurement(
            **scores.context.row(),
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
    separation: Separation,
    draws: Bootstrap,
    shared: Mapping[str, Any],
    ranks: Mapping[str, Ranks],
    wider: Mapping[tuple[str, ...], Mapping[str, Any]],
    metrics: Sequence[Metric],
    intervals: Intervals,
) -> Iterator[Measurement]:
    rankings = {name: Ranking(separation.negative, values) for name, values in separation.ood.items()}
    spans = _resampled_intervals(separation.groups, draws, metrics, intervals)
    for group, names in separation.groups.items():
        shown = {**shared, "group": group, "n_id": separation.negative.size}
        for metric in (each.name for each in metrics):
            for shown_as, members in (*((name, [name]) for name in names), (MEAN, names)):
                selected = [rankings[name] for name in members]
                row = {**shown, "set": shown_as, "metric": metric, "n_ood": sum(each.n_ood for each in selected)}
                if metric != "auroc":
                    value = draws.point(metric, members)
                    yield Measurement(**row, **_ends(value, spans.get((metric, tuple(members)), NO_INTERVAL)))
                    continue
                value = float(np.mean([each.auroc for each in selected]))
                extra: dict[str, Any] = {} if shown_as != MEAN else dict(ranks.get(group, {}))
                interval = NO_INTERVAL
                if intervals != "none":
                    extra |= wider[tuple(members)]
                    interval = mean_auroc_interval(selected, LEVEL)
                yield Measurement(**row, **_ends(value, interval), **extra)


def _resampled_intervals(
    groups: Mapping[str, Sequence[str]], draws: Bootstrap, metrics: Sequence[Metric], intervals: Intervals
) -> dict[tuple[str, tuple[str, ...]], Interval]:
    """The intervals of one detector that come from replicates, by metric and the sets that are taken together."""
    means = [
        (metric.name, tuple(members))
        for metric in metrics
        if metric.name != "auroc"
        for names in groups.values()
        for members in (*([name] for name in names), names)
    ]
    if intervals == "none" or not means:
        return {}
    return dict(zip(means, draws.mean_intervals(means, LEVEL)))


def _ends(value: float, interval: Interval) -> dict[str, Any]:
    return {
        "value": value,
        "low": interval.low,
        "high": interval.high,
        "interval": interval.method,
        "level": interval.level,
    }
