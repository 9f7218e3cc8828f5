"""The map of a page: near against far, every entry a dot that leads to its row."""

import numpy as np
from markupsafe import Markup

from oodscope.document.number import Number
from oodscope.document.table import Column
from oodscope.leaderboard.site.lines import Line, TableView
from oodscope.leaderboard.site.words import TRACKS
from oodscope.metrics.metric import MEAN
from oodscope.report.svg import Plot, caption, drawing, x_axis, y_axis

STYLES = {track: f"c{place}" for place, track in enumerate(TRACKS)}
"""A colour for each track."""

_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_NEAR, _FAR = Column("near", MEAN), Column("far", MEAN)


def dots(view: TableView, title: str) -> Markup | None:
    """The drawing, or nothing where fewer than three entries have both means."""
    if _NEAR not in view.columns or _FAR not in view.columns:
        return None
    near, far = view.columns.index(_NEAR), view.columns.index(_FAR)
    found = [
        (line, ranking.track, x, y)
        for ranking in view.rankings
        for line in ranking.lines
        if (x := line.cells[near]) is not None and (y := line.cells[far]) is not None
    ]
    if len(found) < 3:
        return None
    plot = Plot(
        640, 420, _range([x.value for *_, x, _ in found]), _range([y.value for *_, y in found]), left=44, bottom=40
    )
    marks = [
        y_axis(plot, _ticks(plot.y)),
        x_axis(plot, _ticks(plot.x)),
        caption(plot.width - plot.right, plot.height - 8, "near mean", "end"),
        caption(plot.left + 6, 18, "far mean"),
        *(_dot(plot, line, STYLES[track], x, y) for line, track, x, y in found),
    ]
    return drawing(plot, title, marks)


def _dot(plot: Plot, line: Line, style: str, x: Number, y: Number) -> Markup:
    words = f"{line.entry.method}: near {x.number}, far {y.number} ({line.standing.tier})"
    return Markup(
        '<a href="#{}"><circle class="dot {}{}" cx="{}" cy="{}" r="4.5"><title>{}</title></circle></a>'
    ).format(
        line.anchors[0],
        style,
        "" if line.row.ranked else " open",
        f"{float(plot.across(x.value)):.1f}",
        f"{float(plot.down(y.value)):.1f}",
        words,
    )


def _range(values: list[float]) -> tuple[float, float]:
    """From the worst to the best, a little air around; a few that lie far off still fit."""
    low, high = min(values), max(values)
    air = 0.04 * (high - low) or 0.01
    return low - air, high + air


def _ticks(ends: tuple[float, float]) -> list[tuple[float, str]]:
    """Round percents, at most seven of them."""
    step = next((step for step in _STEPS if (ends[1] - ends[0]) / step <= 7), _STEPS[-1])
    values = np.arange(np.ceil(ends[0] / step), np.floor(ends[1] / step) + 1) * step
    return [(float(value), f"{100 * value:g}") for value in values.round(6)]
