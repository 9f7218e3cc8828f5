"""Cost against quality: which detectors are worth their time?"""

from collections.abc import Mapping, Sequence

from oodscope.document.figure import Axis, Figure, Line, Points, Position, figure_name, positions_of
from oodscope.document.wording import higher_is_better, label
from oodscope.metrics.metric import MEAN
from oodscope.protocols.registry import headline_metrics
from oodscope.results.measurement import Measurement
from oodscope.runs.evaluation.run import Result

LABELLED = 14
"""Most detectors that are all named beside their points; of more, only those in the front."""

_HOVER = "{label}\n{x:.3g} µs per image\n{y:.2%}"


def cost_against_quality(
    result: Result,
    protocol: str,
    group: str,
    metric: str | None = None,
    detectors: Sequence[str] | None = None,
    positions: Mapping[str, Position] | None = None,
) -> Figure:
    """Microseconds per image against the mean of a metric over the sets of a group, with the Pareto front.

    Parameters
    ----------
    metric : the headline of the protocol by default.
    detectors : those of the rows by default. One without a measured cost is left out.
    positions : of detectors on the page; their places among ``detectors`` by default.
    """
    metric = metric or headline_metrics(protocol, result.measurements)[0]
    rows = result.measurements.filter(protocol=protocol, group=group, set=MEAN, metric=metric)
    chosen = list(detectors or dict.fromkeys(row.detector for row in rows))
    places = positions or positions_of(chosen)
    measured = [row for row in rows if row.microseconds_per_image and row.detector in chosen]
    up = higher_is_better(metric)
    front = pareto_front([(row.microseconds_per_image or 0.0, row.value) for row in measured], higher_is_better=up)
    named = range(len(measured)) if len(measured) <= LABELLED else front
    words = f"{label(metric)}, mean over the {group.replace('_', ' ')} sets"
    return Figure(
        figure_name("cost", protocol, group, metric),
        f"Cost against quality under {protocol.replace('_', ' ')}: {words}",
        "Time of the detector alone, on a logarithmic axis, without any pass through the network, of which some "
        f"detectors need more than one: further left is cheaper, further {'up' if up else 'down'} is better. The line "
        "joins the detectors that none other beats in both (the Pareto front).",
        (
            *_front(measured, front),
            *(_point(row, places[row.detector], number in named) for number, row in enumerate(measured)),
        ),
        Axis("µs per image", scale="log"),
        Axis(words, percent=True),
        legend=False,
        shape="square",
    )


def pareto_front(points: Sequence[tuple[float, float]], *, higher_is_better: bool = True) -> list[int]:
    """Which (cost, quality) no other point beats: at most the cost and at least the quality, and better in one of them.

    In the order of cost; of equal points all are in the front, or none.
    """
    sign = 1.0 if higher_is_better else -1.0
    order = sorted(range(len(points)), key=lambda n: (points[n][0], -sign * points[n][1]))
    front: list[int] = []
    for n in order:
        cost, quality = points[n]
        if not front or sign * quality > sign * points[front[-1]][1] or (cost, quality) == points[front[-1]]:
            front.append(n)
    return front


def _front(rows: Sequence[Measurement], front: Sequence[int]) -> list[Line]:
    best = [rows[n] for n in front]
    if len(best) < 2:
        return []
    cost, quality = tuple(row.microseconds_per_image or 0.0 for row in best), tuple(row.value for row in best)
    return [Line("front", cost, quality, "best", steps=True)]


def _point(row: Measurement, position: Position, written: bool) -> Points:
    """A marker with its interval where there is one, and its name where points do not crowd."""
    low, high = ((), ()) if row.low is None or row.high is None else ((row.low,), (row.high,))
    place = ((row.microseconds_per_image or 0.0,), (row.value,))
    return Points(row.detector, *place, position, low, high, (row.detector,), written, hover=_HOVER)
