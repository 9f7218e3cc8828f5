"""Cost against quality: which detectors are worth their time?"""

from collections.abc import Sequence
from typing import Any

from oodscope.document.wording import higher_is_better, label
from oodscope.metrics.metric import MEAN
from oodscope.protocols.registry import headline_metrics
from oodscope.report.plots.marks import axis, layout, line
from oodscope.report.plots.plot import PlotlyFigure, figure_name, plain, shown
from oodscope.report.plots.positions import detector_positions
from oodscope.results.measurement import Measurement
from oodscope.runs.evaluation.run import Result

LABELLED = 14
"""Most detectors that are all named beside their points; of more, only those in the front."""

_HOVER = "<b>%{text}</b><br>%{x:.3~g} µs per image<br>%{y:.2%}"


def cost_against_quality(
    result: Result, protocol: str, group: str, metric: str | None = None, detectors: Sequence[str] | None = None
) -> PlotlyFigure:
    """Microseconds per image against the mean of a metric over the sets of a group, with the Pareto front.

    Parameters
    ----------
    metric : the headline of the protocol by default.
    detectors : in the order of their colours; those of the rows by default. One without a measured cost is left out.
    """
    metric = metric or headline_metrics(protocol)[0]
    rows = result.measurements.filter(protocol=protocol, group=group, set=MEAN, metric=metric)
    places = detector_positions(detectors or [row.detector for row in rows])
    measured = [row for row in rows if row.microseconds_per_image and row.detector in places]
    up = higher_is_better(metric)
    points = [(row.microseconds_per_image or 0.0, row.value) for row in measured]
    front = pareto_front(points, higher_is_better=up)
    named = range(len(measured)) if len(measured) <= LABELLED else front
    markers = [_point(row, places[row.detector], number in named) for number, row in enumerate(measured)]
    words = f"{label(metric)}, mean over the {group.replace('_', ' ')} sets"
    return PlotlyFigure(
        figure_name("cost", protocol, group, metric),
        f"Cost against quality: {words}",
        "Time of the detector alone, beside the network's pass, on a logarithmic axis: further left is cheaper, "
        f"further {'up' if up else 'down'} is better. The line joins the detectors that none other beats in both (the "
        "Pareto front).",
        (*_front(measured, front), *markers),
        layout(axis("µs per image", type="log"), axis(words, tickformat="~%"), height=420, showlegend=False),
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


def _front(rows: Sequence[Measurement], front: Sequence[int]) -> list[dict[str, Any]]:
    chosen = [rows[n] for n in front]
    if len(chosen) < 2:
        return []
    cost, quality = [row.microseconds_per_image or 0.0 for row in chosen], [row.value for row in chosen]
    return [line(cost, quality, "front", "best", "", line={"shape": "hv", "width": 1.5}, hoverinfo="skip")]


def _point(row: Measurement, place: int, named: bool) -> dict[str, Any]:
    """A marker with its interval where there is one, and its name where points do not crowd."""
    extra: dict[str, Any] = {"text": [plain(row.detector)], "textposition": "top center", "marker": {"size": 9}}
    if row.low is not None and row.high is not None:
        up, down = shown([row.high - row.value, row.value - row.low])
        extra["error_y"] = {"type": "data", "symmetric": False, "array": [up], "arrayminus": [down], "width": 0}
    mode = "markers+text" if named else "markers"
    return line([row.microseconds_per_image or 0.0], [row.value], row.detector, place, _HOVER, **extra) | {"mode": mode}
