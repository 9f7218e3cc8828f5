"""Test sets with the knowledge of what the classifier gets right in them, grouped by the kind of shift."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.data.benchmark import Role
from oodscope.metrics.interval import NO_INTERVAL, Interval
from oodscope.metrics.metric import MEAN
from oodscope.metrics.rejection.rate_intervals import RateNoise, mean_rate_interval
from oodscope.metrics.resampling.bootstrap import percentile_interval
from oodscope.results.measurement import Measurement
from oodscope.results.scoretable import ScoreTable

SHIFTS: dict[str, tuple[Role, ...]] = {"label_shift": ("near", "far"), "input_shift": ("id_test", "csid")}
"""An OOD class shifts the label, so that no prediction is right; a corruption or another style shifts the input
only, and the classifier may still be right. ``id_test`` is the input shift of size zero."""


@dataclass(frozen=True)
class LabelledSet:
    """One test set.

    Parameters
    ----------
    group : ``label_shift`` or ``input_shift``.
    rows : where its images stand in the score table.
    correct : whether the classifier's prediction is right; false throughout under label shift.
    classes : of each image in its own set; empty where one has none.
    """

    name: str
    role: str
    group: str
    rows: NDArray[np.int64]
    correct: NDArray[np.bool_]
    classes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_ood(self) -> bool:
        """Whether its classes are unknown to the classifier."""
        return self.group == "label_shift"


def labelled_sets(scores: ScoreTable) -> list[LabelledSet]:
    """Every test set of the table, OOD ones first."""
    right, own = scores.correct(), scores.frame["own_class"].to_numpy()
    found = []
    for group, roles in SHIFTS.items():
        for role in roles:
            for name in scores.sets(role):
                rows = rows_of(scores, role, name)
                classes = own[rows] if (own[rows] >= 0).all() else own[:0]
                found.append(LabelledSet(name, role, group, rows, right[rows], classes))
    return found


def rows_of(scores: ScoreTable, role: str, name: str | None = None) -> NDArray[np.int64]:
    """Where the images of a role, or of one of its sets, stand in the table."""
    chosen = (scores.frame["role"] == role).to_numpy()
    if name is not None:
        chosen = chosen & (scores.frame["set"] == name).to_numpy()
    return np.flatnonzero(chosen)


CAUTIOUS = "order-statistics"
"""How the method of an interval begins that few images of a threshold made wide."""

LEVEL = 0.95
REPLICATES = 1000
ALL = "all"
"""The group whose mean runs over every test set, as the paper averages: each set counts once, whatever its size."""


@dataclass(frozen=True)
class Estimate:
    """A metric on one set.

    Parameters
    ----------
    value : NaN where the metric is not defined, such as a false rejection rate without a correct image.
    replicates : the same from bootstrap resamples. Replicate r used the same draw of whatever sets share (the
        threshold sample, the ID images), so means over sets are taken replicate by replicate. Empty where every
        interval is had without them.
    n_id, n_ood : images of known and of OOD classes that it was measured on.
    interval : where there is a better one than that of the replicates.
    noise : its noise if other OOD classes were drawn, at the threshold as it is, and the same replicate by replicate of
        the threshold alone; ``None`` where a set has too few classes.
    """

    value: float
    replicates: NDArray[np.float64]
    n_id: int
    n_ood: int
    interval: Interval | None = None
    noise: tuple[RateNoise, NDArray[np.float64]] | None = None


def estimate_rows(
    shared: Mapping[str, Any],
    metric: str,
    sets: Sequence[LabelledSet],
    estimates: Mapping[str, Estimate],
    joint: Interval | None = None,
) -> Iterator[Measurement]:
    """A row for each set, and one for the mean of each group of which every set has an estimate.

    ``joint`` is the interval of a mean, where there is a better one than that of the replicates.
    """
    defined = {name: each for name, each in estimates.items() if not isnan(each.value)}
    for each in sets:
        if each.name in defined:
            yield _row(shared, metric, each.group, each.name, [defined[each.name]], defined[each.name].interval)
    for group in (ALL, *SHIFTS):
        members = [each.name for each in sets if group in (ALL, each.group)]
        if members and all(name in defined for name in members):
            yield _row(
                shared, metric, group, MEAN, [defined[name] for name in members], joint or _joined(defined, members)
            )


def _joined(estimates: Mapping[str, Estimate], members: Sequence[str]) -> Interval | None:
    """The mean of the ends, where every set has a conservative interval because few images set the threshold."""
    intervals = [estimates[name].interval for name in members]
    ends = [each for each in intervals if each is not None and each.method.startswith(CAUTIOUS)]
    if len(ends) < len(members):
        return None
    low, high = (float(np.mean([getattr(each, end) for each in ends])) for end in ("low", "high"))
    return Interval(low, high, LEVEL, ends[0].method)


def _class_ends(found: Sequence[Estimate], images: Interval | None) -> dict[str, Any]:
    """The fields ``class_low`` and ``class_high``, where an OOD set is among them and every set has what they need.

    Where few images set the threshold, resamples of it do not show how far it may lie; the interval then holds that of
    ``images``, which comes from order statistics.
    """
    noises = [each.noise for each in found if each.noise is not None]
    if len(noises) < len(found) or not any(each.n_ood for each in found):
        return {}
    thresholds = np.mean([replicates for _, replicates in noises], axis=0)
    rates = [each.value for each in found]
    interval = mean_rate_interval(rates, [noise for noise, _ in noises], float(np.var(thresholds)), LEVEL)
    if interval is None:
        return {}
    ends = [interval, images] if images is not None and images.method.startswith(CAUTIOUS) else [interval]
    return {"class_low": min(each.low for each in ends), "class_high": max(each.high for each in ends)}


def _row(
    shared: Mapping[str, Any],
    metric: str,
    group: str,
    name: str,
    found: Sequence[Estimate],
    interval: Interval | None,
) -> Measurement:
    if interval is None:
        replicates = np.mean([each.replicates for each in found], axis=0)
        interval = percentile_interval(replicates, LEVEL) if replicates.size else NO_INTERVAL
    return Measurement(
        **shared,
        **_class_ends(found, interval),
        metric=metric,
        group=group,
        set=name,
        value=float(np.mean([each.value for each in found])),
        low=interval.low,
        high=interval.high,
        interval=interval.method,
        level=interval.level,
        # OOD sets bring id_test along, which must not be counted once for each
        n_id=sum(each.n_id for each in found if not each.n_ood) or max(each.n_id for each in found),
        n_ood=sum(each.n_ood for each in found),
    )
