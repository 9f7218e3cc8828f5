"""The protocol of streams: scores in the order in which images came, over many schedules."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import AUROC, STREAM
from oodscope.metrics.comparison.influence import Estimates, part_of_units
from oodscope.metrics.interval import t_interval
from oodscope.metrics.scores import FloatArray
from oodscope.metrics.stream import Flags, bursts, rolling_thresholds, window_auroc
from oodscope.protocols.base import Protocol
from oodscope.protocols.statements import rank_fields
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.stream.schedule import Schedule

if TYPE_CHECKING:
    import pandas as pd

    from oodscope.data.benchmark import Benchmark

SCHEDULES, TRANSDUCTIVE = "schedules", "transductive"
"""Keys of the context of a table of streams: its schedules, and which of its detectors learn from the stream."""

Values = dict[tuple[str, str], dict[str, FloatArray]]
"""By schedule and OOD set, of each metric the values ``[stream, detector]``; NaN where it says nothing."""

METRICS = (*STREAM[:1], AUROC, *STREAM[1:])
_HIGHER = {metric.name: metric.higher_is_better for metric in METRICS}


@dataclass(frozen=True)
class Stream:
    """One drawn stream: which places hold OOD images, and its scores by detector, in order.

    Parameters
    ----------
    held_out : by detector, the scores of the ID validation images, streamed before.
    """

    schedule: Schedule
    set: str
    is_ood: Flags
    scores: dict[str, FloatArray]
    held_out: dict[str, FloatArray]


def unit_of(schedule: int, ood: str, draw: int) -> str:
    """The ``unit`` of the rows of one drawn stream; the ID validation images have the schedule's number alone."""
    return f"{schedule}/{ood}/{draw}"


def streams_of(scores: ScoreTable) -> Iterator[Stream]:
    """Every stream of a table, in the order of its rows."""
    schedules = schedules_of(scores)
    frames = {str(unit): frame for unit, frame in scores.frame.groupby("unit", sort=False, observed=True)}
    held = {unit: _columns(frame, scores) for unit, frame in frames.items() if unit.isdigit()}
    for unit, frame in frames.items():
        number, _, rest = unit.partition("/")
        if rest:
            if number not in held:
                raise DataError(f"stream {unit}: its schedule has no scores of id_val, on which thresholds are fixed")
            is_ood = frame["role"].isin(("near", "far")).to_numpy()
            name = rest.rpartition("/")[0]
            yield Stream(schedules[int(number)], name, is_ood, _columns(frame, scores), held[number])


def schedules_of(scores: ScoreTable) -> list[Schedule]:
    """The schedules of a table of streams."""
    return [Schedule(**each) for each in scores.context.extra.get(SCHEDULES, ())]


def _columns(frame: "pd.DataFrame", scores: ScoreTable) -> dict[str, FloatArray]:
    return {name: frame[name].to_numpy() for name in scores.detectors}


class StreamProtocol(Protocol):
    """AUROC within windows, false alarms and bursts of every detector, as means over the drawn streams of a schedule.

    Intervals are Student's over drawn streams: they speak of other streams of the same kind, drawn from the same pools
    of images. Detectors that learn from the stream are ranked among themselves, by paired differences; the others are
    constant baselines.

    Parameters
    ----------
    windows : equal parts of a stream within which OOD and ID images are compared.
    alarm_share : of the ID validation images that the fixed threshold flags, and of recent images that the rolling one
        flags.
    rolling : scores before an image that its rolling threshold is a quantile of.
    """

    name, title = "stream", "Stream"
    summary = "Score images in the order in which they come; detectors may learn from those before."
    position = 6
    metrics, headline = METRICS, ("window_auroc", "auroc")
    negatives, groups = (), {}

    def __init__(self, windows: int = 10, alarm_share: float = 0.05, rolling: int = 200) -> None:
        if windows < 1 or rolling < 1 or not 0 < alarm_share < 1:
            raise DataError("stream: windows and rolling are 1 or more, alarm_share lies between 0 and 1")
        self.windows = windows
        self.alarm_share = alarm_share
        self.rolling = rolling

    def measure(self, scores: ScoreTable) -> Measurements:
        return Measurements(self._rows(scores))

    def check(self, benchmark: "Benchmark") -> None:
        raise DataError("streams are drawn by `oodscope stream`; an evaluation of independent images has no order")

    def values(self, scores: ScoreTable) -> Values:
        """Every metric of every stream."""
        found: dict[tuple[str, str], dict[str, list[list[float]]]] = {}
        for stream in streams_of(scores):
            measured = [self._measured(stream, name) for name in scores.detectors]
            rows = found.setdefault((stream.schedule.name, stream.set), {})
            for metric in _HIGHER:
                rows.setdefault(metric, []).append([each.get(metric, np.nan) for each in measured])
        return {key: {metric: np.array(rows) for metric, rows in each.items()} for key, each in found.items()}

    def _measured(self, stream: Stream, detector: str) -> dict[str, float]:
        """Every metric of one stream under one detector."""
        scores, held, is_ood = stream.scores[detector], stream.held_out[detector], stream.is_ood
        fixed = scores > np.quantile(held, 1 - self.alarm_share, method="higher")
        rolling = scores > rolling_thresholds(held, scores, self.alarm_share, self.rolling)
        found = {
            "window_auroc": window_auroc(scores, is_ood, self.windows),
            "auroc": window_auroc(scores, is_ood, 1),
            "alarms_per_1000": 1000 * float(fixed[~is_ood].mean()),
            "ood_flagged": float(fixed[is_ood].mean()),
            "rolling_alarms_per_1000": 1000 * float(rolling[~is_ood].mean()),
            "rolling_ood_flagged": float(rolling[is_ood].mean()),
        }
        if stream.schedule.order != "mixed":  # where images are mixed, neighbours of one kind are no burst
            each = bursts(is_ood, fixed)
            found["images_to_half_burst"] = float(np.mean([burst.waited for burst in each]))
            found["bursts_half_flagged"] = float(np.mean([burst.until_half is not None for burst in each]))
        return found

    def _rows(self, scores: ScoreTable) -> Iterator[Measurement]:
        counts = _counts(scores)
        for (schedule, name), metrics in self.values(scores).items():
            for metric, values in metrics.items():
                kept = values[~np.isnan(values).any(axis=1)]
                if not len(kept):
                    continue  # no window holds both, or there are no bursts
                ranks = _ranks(kept, scores, _HIGHER[metric])
                for place, detector in enumerate(scores.detectors):
                    yield Measurement(
                        **scores.context.row(detector),
                        protocol=self.name,
                        group=schedule,
                        set=name,
                        metric=metric,
                        value=float(kept[:, place].mean()),
                        **_interval(kept[:, place]),
                        **ranks.get(detector, {}),
                        **counts[schedule, name],
                    )


def _counts(scores: ScoreTable) -> dict[tuple[str, str], dict[str, Any]]:
    """ID and OOD images of one stream of each kind."""
    return {
        (stream.schedule.name, stream.set): {"n_id": int((~stream.is_ood).sum()), "n_ood": int(stream.is_ood.sum())}
        for stream in streams_of(scores)
    }


def _interval(values: FloatArray) -> dict[str, Any]:
    if len(values) < 2:
        return {}
    each = t_interval(values)
    return {"low": each.low, "high": each.high, "level": each.level, "interval": each.method}


def _ranks(values: FloatArray, scores: ScoreTable, higher: bool) -> dict[str, dict[str, Any]]:
    """Ranks among the detectors that learn from the stream, by paired differences over streams."""
    rivals = [name for name in scores.detectors if name in scores.context.extra.get(TRANSDUCTIVE, ())]
    if len(rivals) < 2 or len(values) < 2:
        return {}
    own: FloatArray = values[:, [scores.detectors.index(name) for name in rivals]]
    estimates = Estimates(own.mean(axis=0), (part_of_units("streams", own),))
    return {name: dict(fields) for name, fields in zip(rivals, rank_fields(estimates, higher))}


def gain_values(values: FloatArray, detectors: Sequence[str], entry: str, baseline: str) -> NDArray[np.float64]:
    """Entry minus baseline in each stream where both have a value."""
    own, other = (values[:, list(detectors).index(name)] for name in (entry, baseline))
    gaps: FloatArray = own - other
    return gaps[~np.isnan(gaps)]
