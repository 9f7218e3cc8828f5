"""The map of a page: near against far, every entry a dot that leads to its row.

It is a list of links that a style sheet puts in their places: each dot can be reached by keyboard and read aloud with
its numbers, and no page of the site needs a plotting script for a single scatter of a few dozen points.
"""

from dataclasses import dataclass

import numpy as np

from oodscope.document.table import Column
from oodscope.leaderboard.site.lines import TableView
from oodscope.leaderboard.site.words import TRACKS
from oodscope.metrics.metric import MEAN

STYLES = {track: f"c{place}" for place, track in enumerate(TRACKS)}
"""A colour for each track."""

FEWEST = 3
"""Dots that are worth a map."""

_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_NEAR, _FAR = Column("near", MEAN), Column("far", MEAN)


@dataclass(frozen=True)
class Dot:
    """One entry: where it lies, as shares of both axes, how it looks, and what it says."""

    x: float
    y: float
    style: str
    anchor: str
    words: str


@dataclass(frozen=True)
class DotMap:
    """All dots, and the round percents along both axes with their places, as shares."""

    dots: tuple[Dot, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]


def dot_map(view: TableView) -> DotMap | None:
    """The map, or nothing where fewer than three entries have both means."""
    if _NEAR not in view.columns or _FAR not in view.columns:
        return None
    near, far = view.columns.index(_NEAR), view.columns.index(_FAR)
    found = [
        (line, ranking.track, x, y)
        for ranking in view.rankings
        for line in ranking.lines
        if (x := line.cells[near]) is not None and (y := line.cells[far]) is not None
    ]
    if len(found) < FEWEST:
        return None
    across, up = _span([x.value for *_, x, _ in found]), _span([y.value for *_, y in found])
    return DotMap(
        tuple(
            Dot(
                _share(x.value, across),
                _share(y.value, up),
                STYLES[track] if line.row.ranked else "open",
                line.anchors[0],
                f"{line.entry.method}: near {x.number}, far {y.number} ({line.standing.tier})",
            )
            for line, track, x, y in found
        ),
        _ticks(across),
        _ticks(up),
    )


def _span(values: list[float]) -> tuple[float, float]:
    """From the worst to the best, a little air around; a few that lie far off still fit."""
    low, high = min(values), max(values)
    air = 0.04 * (high - low) or 0.01
    return low - air, high + air


def _share(value: float, ends: tuple[float, float]) -> float:
    return (value - ends[0]) / (ends[1] - ends[0])


def _ticks(ends: tuple[float, float]) -> tuple[tuple[float, str], ...]:
    """Round percents, at most seven of them, each with its place."""
    step = next((step for step in _STEPS if (ends[1] - ends[0]) / step <= 7), _STEPS[-1])
    values = (np.arange(np.ceil(ends[0] / step), np.floor(ends[1] / step) + 1) * step).round(6).tolist()
    return tuple((_share(value, ends), f"{100 * value:g}") for value in values)
