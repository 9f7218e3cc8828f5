"""Cost against quality: which detectors are worth their time?"""

import math
from collections.abc import Mapping, Sequence

from oodscope.document.figure import Axis, Figure, Line, Points, Position, figure_name, positions_of
from oodscope.document.wording import higher_is_better, label
from oodscope.metrics.metric import MEAN
from oodscope.protocols.registry import headline_metrics
from oodscope.results.measurement import Measurement
from oodscope.runs.evaluation.run import Result

LABELLED = 14
"""Most detectors that are all named beside their points; of more, only those in the front."""

_HOVER = "{label}\n{y:.2%}"


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
    described = result.scores.context.detectors
    places_x, ticks = _axis([(described[row.detector].passes, row.microseconds_per_image or 0.0) for row in measured])
    up = higher_is_better(metric)
    front = pareto_front([(x, row.value) for x, row in zip(places_x, measured)], higher_is_better=up)
    named = range(len(measured)) if len(measured) <= LABELLED else front
    words = f"{label(metric)}, mean over the {group.replace('_', ' ')} sets"
    more = any(described[row.detector].passes for row in measured)
    return Figure(
        figure_name("cost", protocol, group, metric),
        f"Cost against quality under {protocol.replace('_', ' ')}: {words}",
        "Time of the detector alone on a logarithmic axis"
        + (
            "; detectors that need further passes through the network stand at its right end, by their passes, since a "
            "pass costs more than a detector's own arithmetic (a backward pass counts as two)"
            if more
            else ", beside the network's one pass"
        )
        + f". Further left is cheaper, further {'up' if up else 'down'} is better. The line joins the detectors that "
        "none other beats in both (the Pareto front).",
        (
            *_front(measured, places_x, front),
            *(
                _point(row, x, places[row.detector], number in named)
                for number, (row, x) in enumerate(zip(measured, places_x))
            ),
        ),
        Axis("µs per image, then further passes" if more else "µs per image", scale="log", ticks=ticks),
        Axis(words, percent=True),
        legend=False,
        shape="square",
    )


def _axis(costs: Sequence[tuple[int, float]]) -> tuple[list[float], tuple[tuple[float, str], ...]]:
    """Where costs of (passes, µs) stand on one logarithmic axis, and its ticks: decades, then one for each passes."""
    plain = [micro for passes, micro in costs if not passes]
    every = plain or [micro for _, micro in costs] or [1.0]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    further_passes = sorted({passes for passes, _ in costs if passes})
    steps = {passes: high + 0.7 * number for number, passes in enumerate(further_passes, 1)}
    # within one number of passes the cheaper arithmetic stands a little to the left
    order = sorted(costs)
    places = [
        10 ** (steps[passes] + 0.25 * (order.index((passes, micro)) / len(order) - 0.5)) if passes else micro
        for passes, micro in costs
    ]
    decades = [(10.0**power, f"{10.0**power:,.10g}") for power in range(low, high + 1)] if plain else []
    further = [(10.0**at, f"+{passes} pass{'es' * (passes > 1)}") for passes, at in steps.items()]
    return places, (*decades, *further)


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


def _front(rows: Sequence[Measurement], places: Sequence[float], front: Sequence[int]) -> list[Line]:
    if len(front) < 2:
        return []
    cost, quality = tuple(places[n] for n in front), tuple(rows[n].value for n in front)
    return [Line("front", cost, quality, "best", steps=True)]


def _point(row: Measurement, x: float, position: Position, written: bool) -> Points:
    """A marker with its interval where there is one, and its name where points do not crowd."""
    low, high = ((), ()) if row.low is None or row.high is None else ((row.low,), (row.high,))
    words = f"{row.detector}, {row.microseconds_per_image:.3g} µs per image"
    labels = (row.detector if written else words,)
    return Points(row.detector, (x,), (row.value,), position, low, high, labels, written, hover=_HOVER)
