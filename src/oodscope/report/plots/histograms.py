"""Histograms of scores: where a detector puts each set beside ID."""

from collections.abc import Mapping
from typing import Any

from oodscope.report.plots.bins import Numbers, outline, shared_edges, shares
from oodscope.report.plots.marks import Colour, axis, layout, line, percents
from oodscope.report.plots.plot import PlotlyFigure, figure_name
from oodscope.report.plots.positions import COMPARED, set_positions
from oodscope.results.scoretable import ScoreTable

_HOVER = "%{fullData.name}: %{y:.2%} of its images"


def score_histograms(scores: ScoreTable, detector: str) -> PlotlyFigure:
    """The scores of one detector: ID as an area, a line for each near, far and shifted set, all in the same bins."""
    places = set_positions(scores)
    known = scores.scores(detector, role="id_test")
    others = {name: scores.scores(detector, role=role, set=name) for role in COMPARED for name in scores.sets(role)}
    edges = shared_edges([known, *others.values()])
    return PlotlyFigure(
        figure_name("scores", detector),
        f"{detector}: scores of every set",
        "Share of the images of a set in each bin, larger score = more OOD. The less the lines of OOD sets overlap the "
        "grey area of ID, the better. Scores beyond the ends count in the outermost bins; a click in the legend "
        "hides a set.",
        (
            _trace(edges, known, "ID", "id", {"width": 0}, fill="tozeroy"),
            *(_trace(edges, sample, name, places[name], {}) for name, sample in others.items()),
        ),
        layout(
            axis(f"score of {detector}", hoverformat=".4~g"),
            percents("share of the set", rangemode="tozero"),
            hovermode="x unified",
        ),
    )


def _trace(
    edges: Numbers, sample: Numbers, name: str, colour: Colour, stroke: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    x, y = outline(edges, shares(sample, edges))
    return line(x, y, name, colour, _HOVER, line={"shape": "hvh", **stroke}, **more)
