"""How well scores separate negatives from each OOD set: the arithmetic that protocols share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.data.benchmark import Role
from oodscope.metrics.catalog import RANKING
from oodscope.metrics.comparison.multiplicity import rank_ranges
from oodscope.metrics.interval import NO_INTERVAL, REPLICATES, Interval, Intervals, wilson_interval
from oodscope.metrics.metric import MEAN, Columns, Metric, columns_of
from oodscope.metrics.ranking.clusters import class_interval, sampling_noise
from oodscope.metrics.ranking.delong import mean_auroc_interval
from oodscope.metrics.ranking.placements import Placements, place, together
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import Walk
from oodscope.metrics.resampling.bootstrap import Bootstrap
from oodscope.metrics.resampling.resampling import bootstrap_each, bootstrap_values
from oodscope.protocols.base import Protocol
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable

Groups = Mapping[str, Sequence[Role]]
"""Which roles' sets each group takes together, as :class:`Protocol` has it."""

GROUPS: Groups = {"near": ("near",), "far": ("far",)}


@dataclass(frozen=True)
class Separation:
    """The scores of one detector, with the class of every image.

    Parameters
    ----------
    negative : scores of the images that count as in-distribution.
    ood : scores of each OOD set.
    groups : the sets of each group that occurs.
    id_classes : the class of each negative.
    ood_classes : the class of each image of the sets that have classes.
    id_correct : whether the classifier gets each negative right.
    """

    negative: NDArray[np.float64]
    ood: Mapping[str, NDArray[np.float64]]
    groups: Mapping[str, Sequence[str]]
    id_classes: NDArray[np.int64]
    ood_classes: Mapping[str, NDArray[np.int64]]
    id_correct: NDArray[np.bool_]
    _placed: dict[str, Placements] = field(default_factory=dict, repr=False)

    def placements(self, names: Sequence[str]) -> Placements:
        """The placements of the mean AUROC over these sets; those of each set are computed once."""
        for name in names:
            if name not in self._placed:
                self._placed[name] = place(self.negative, {name: self.ood[name]})
        return together([self._placed[name] for name in names])

    def columns(self) -> dict[str, Columns]:
        """Plain columns of the negatives beside each OOD set, for metrics that are weighted functionals."""
        return {
            name: columns_of(self.negative, values, id_correct=self.id_correct, ood_class=self.ood_classes.get(name))
            for name, values in self.ood.items()
        }

    @property
    def testable(self) -> bool:
        """Whether every sample has the two images without which a paired test has no noise to go by."""
        return min(self.negative.size, *(values.size for values in self.ood.values())) > 1


def separate(scores: ScoreTable, negatives: Sequence[str], groups: Groups = GROUPS) -> dict[str, Separation]:
    """Each detector's scores, ID against every OOD set; images in one order for all detectors.

    Parameters
    ----------
    negatives : the roles whose images count as in-distribution.
    groups : the OOD sets that count, and whose mean is taken.
    """
    frame = scores.frame
    rows = {role: np.flatnonzero((frame["role"] == role).to_numpy()) for role in negatives}
    known = np.concatenate(list(rows.values()))
    members = {group: [name for role in roles for name in scores.sets(role)] for group, roles in groups.items()}
    members = {group: names for group, names in members.items() if names}
    ood_rows = {
        name: np.flatnonzero(((frame["set"] == name) & (frame["role"] == role)).to_numpy())
        for roles in groups.values()
        for role in roles
        for name in scores.sets(role)
    }
    own = frame["own_class"].to_numpy()
    classes = {name: own[rows] for name, rows in ood_rows.items() if (own[rows] >= 0).all()}
    labels = frame["label"].to_numpy()[known]
    correct = scores.correct()[known]
    columns = {detector: frame[detector].to_numpy() for detector in scores.detectors}
    return {
        detector: Separation(
            column[known], {name: column[rows] for name, rows in ood_rows.items()}, members, labels, classes, correct
        )
        for detector, column in columns.items()
    }


def class_ends(separation: Separation, names: Sequence[str], level: float) -> dict[str, Any]:
    """The fields ``class_low`` and ``class_high`` of a measurement; none where a set has fewer than 5 classes."""
    interval = class_interval(
        separation.placements(names),
        id_classes=separation.id_classes,
        ood_classes=separation.ood_classes,
        level=level,
    )
    return {} if interval is None else {"class_low": interval.low, "class_high": interval.high}


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
"""The fields ``rank_low`` and ``rank_high`` of a measurement; empty where nothing can be tested."""


def group_ranks(separations: Mapping[str, Separation], tracks: Mapping[str, str]) -> dict[str, dict[str, Ranks]]:
    """For each detector and group its range of ranks among the detectors of its tuning track.

    See :func:`rank_ranges`. A detector alone in its track has no rank, and none has
    one where a sample is a single image.
    """
    found: dict[str, dict[str, Ranks]] = {
        name: {group: {} for group in each.groups} for name, each in separations.items()
    }
    for track in dict.fromkeys(tracks.values()):
        rivals = [name for name in separations if tracks[name] == track]
        if len(rivals) < 2 or not separations[rivals[0]].testable:
            continue
        for group, names in separations[rivals[0]].groups.items():
            ranges = rank_ranges([separations[rival].placements(names) for rival in rivals])
            for rival, (low, high) in zip(rivals, ranges):
                found[rival][group] = {"rank_low": low, "rank_high": high}
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
    # the interval of an AUROC needs no replicates
    resampled = [metric for metric in metrics if metric.name != "auroc"]
    draws = resample(separations, resampled, seed=scores.context.seed or 0, replicates=REPLICATES[intervals])
    ranks: dict[str, dict[str, Ranks]] = {}
    if intervals != "none":
        ranks = group_ranks(separations, {name: scores.context.detectors[name].tuning for name in separations})
    rows: list[Measurement] = []
    for detector, separation in separations.items():
        shared = {**scores.context.row(detector), "protocol": protocol}
        rows += _detector_rows(separation, draws[detector], shared, ranks.get(detector, {}), metrics, intervals)
    return Measurements(rows)


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
    metrics: Sequence[Metric],
    intervals: Intervals,
) -> Iterator[Measurement]:
    rankings = {name: Ranking(separation.negative, values) for name, values in separation.ood.items()}
    for group, names in separation.groups.items():
        shown = {**shared, "group": group, "n_id": separation.negative.size}
        for metric in (each.name for each in metrics):
            for shown_as, members in (*((name, [name]) for name in names), (MEAN, names)):
                selected = [rankings[name] for name in members]
                row = {**shown, "set": shown_as, "metric": metric, "n_ood": sum(each.n_ood for each in selected)}
                if metric != "auroc":
                    value = draws.point(metric, members)
                    interval = NO_INTERVAL if intervals == "none" else draws.mean_interval(metric, members, LEVEL)
                    yield Measurement(**row, **_ends(value, interval))
                    continue
                value = float(np.mean([each.auroc for each in selected]))
                extra: dict[str, Any] = {} if shown_as != MEAN else dict(ranks.get(group, {}))
                interval = NO_INTERVAL
                if intervals != "none":
                    extra |= class_ends(separation, members, LEVEL)
                    interval = mean_auroc_interval(selected, LEVEL)
                yield Measurement(**row, **_ends(value, interval), **extra)


def _ends(value: float, interval: Interval) -> dict[str, Any]:
    return {
        "value": value,
        "low": interval.low,
        "high": interval.high,
        "interval": interval.method,
        "level": interval.level,
    }
