"""The marks that all plots are made of, in the vocabulary of plotly: lines, axes, heatmaps. Colours are positions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oodscope.report.plots.plot import plain, shown

Colour = int | str
"""The number of a set or detector, or ``"id"``, ``"ink"``, ``"soft"``, ``"best"``."""


def line(x: ArrayLike, y: ArrayLike, name: str, colour: Colour, hover: str, **more: Any) -> dict[str, Any]:
    """A line through the points; ``hover`` is plotly's template of what a pointer shows there.

    No name of a user goes into a template, because plotly would read its ``%{...}``; ``%{fullData.name}`` stands for
    it.
    """
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name),
        "x": shown(np.asarray(x)),
        "y": shown(np.asarray(y)),
        "hovertemplate": f"{hover}<extra></extra>",
        "meta": {"colour": colour},
        **more,
    }


def guide(x: Sequence[float], y: Sequence[float]) -> dict[str, Any]:
    """A dotted line to compare with, such as chance; it answers no pointer and stands in no legend."""
    hidden = {"hoverinfo": "skip", "showlegend": False}
    return line(x, y, "", "soft", "", line={"dash": "dot", "width": 1}, **hidden)


WRITTEN = 12
"""Most columns of a heatmap whose numbers are written into it."""


def heat(
    z: Sequence[Sequence[float | None]], x: Sequence[str], y: Sequence[str], hover: str, *, written: str, **more: Any
) -> dict[str, Any]:
    """A field for each pair, rows from above; a pair without a number stays empty.

    ``written`` is the format (of d3) of the number in each field, where there is room.
    """
    rows = [[None if value is None else shown(value) for value in row] for row in z]
    if len(x) <= WRITTEN:
        more["texttemplate"] = f"%{{z:{written}}}"
    return {
        "type": "heatmap",
        "z": rows,
        "x": [plain(name) for name in x],
        "y": [plain(name) for name in y],
        "hovertemplate": f"{hover}<extra></extra>",
        "xgap": 1,
        "ygap": 1,
        "meta": {"scale": "sequential"},
        **more,
    }


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis of numbers."""
    return {"title": {"text": plain(title)}, **more}


def percents(title: str, **more: Any) -> dict[str, Any]:
    """An axis of shares, read in percent."""
    return axis(title, tickformat="~%", **more)


def names(title: str, **more: Any) -> dict[str, Any]:
    """An axis of names; without its type plotly takes ``"2012"`` for a number and ``"may-1"`` for a date."""
    return axis(title, type="category", **more)


def layout(x: Mapping[str, Any], y: Mapping[str, Any], height: int = 380, **more: Any) -> dict[str, Any]:
    """Both axes and a height in pixels; everything else is the page's."""
    return {"xaxis": x, "yaxis": y, "height": height, **more}


def square(rows: int) -> int:
    """The height of a heatmap whose rows can be read."""
    return 150 + 24 * max(rows, 4)
