"""From a figure to the JSON that a page's script hands to plotly.js; no Python package of that name is needed.

Colours stay positions in the page's palette: ``meta.colour`` of a trace is the position of its series, ``meta.open``
asks for its mark as an outline, ``meta.scale`` of a heatmap is ``"sequential"`` or ``"diverging"``.
``layout.meta.log_axis`` names the axis that a reader may switch to a logarithmic one.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.document.figure import Axis, Band, Bars, Figure, Heatmap, Histogram, Line, Mark, Points, Position, Text
from oodscope.report.render.thinning import thin

WRITTEN = 12
"""Most columns of a heatmap whose numbers are written into it."""

NAMED = 30
"""Most rows or columns of a heatmap whose names stand beside it."""

_DIGITS = 4
_HEIGHTS = {"wide": 380, "square": 440, "low": 320, "equal": 420}
_WIDTHS: dict[str, dict[str, Any]] = {"thin": {"width": 1}, "normal": {}, "heavy": {"width": 4}}
_SIDES = {
    "left": "middle left",
    "right": "middle right",
    "above": "top center",
    "below": "bottom center",
    "middle": "middle center",
}
_FIELD = re.compile(r"\{(\w+)(\[\d\])?(:[^}]*)?\}")
_FIELDS = {"name": "fullData.name", "beside": "customdata", "row": "y", "column": "x", "value": "z", "label": "text"}
_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})

Trace = dict[str, Any]
Ends = dict[str, tuple[float, float]]
"""The least and the greatest number along an axis, by its name."""


def plotly_json(figure: Figure) -> str:
    """Traces and layout as JSON that can stand inside a ``<script>`` element: no HTML, finite numbers only."""
    content = {"data": list(traces(figure)), "layout": layout(figure)}
    return json.dumps(content, separators=(",", ":"), allow_nan=False).translate(_MARKUP)


def traces(figure: Figure) -> Iterator[Trace]:
    """The marks in the vocabulary of plotly; all words are one trace, and the last."""
    words = [mark for mark in figure.marks if isinstance(mark, Text)]
    ends = _ends(figure)
    for mark in figure.marks:
        if not isinstance(mark, Text):
            yield _trace(mark, figure, ends)
    if words:
        yield _words(words)


def layout(figure: Figure) -> dict[str, Any]:
    """Both axes and a height in pixels; everything else is the page's."""
    found: dict[str, Any] = {"xaxis": _axis(figure.x), "yaxis": _axis(figure.y), "height": _height(figure)}
    if figure.y.scale == "names":
        found["yaxis"]["autorange"] = "reversed"
    if not figure.legend:
        found["showlegend"] = False
    if any(isinstance(mark, Histogram) for mark in figure.marks):
        found["hovermode"] = "x unified"
    if any(isinstance(mark, Bars) for mark in figure.marks):
        found["barmode"] = "stack"
    if figure.shape == "equal":
        found["yaxis"] |= {"scaleanchor": "x", "constrain": "domain"}
        found["xaxis"]["constrain"] = "domain"
    for name, axis in (("x", figure.x), ("y", figure.y)):
        if axis.log_range is not None:
            found["meta"] = {"log_axis": name, "log_range": shown(np.log10(axis.log_range))}
    heat = next((mark for mark in figure.marks if isinstance(mark, Heatmap)), None)
    if heat is not None:
        found["xaxis"]["showticklabels"] = len(heat.columns) <= NAMED
        found["yaxis"]["showticklabels"] = len(heat.rows) <= NAMED
    return found


def plain(text: str) -> str:
    """Text of a user as plotly shows it letter by letter: plotly reads a little HTML in labels."""
    return escape(text, quote=False)


def shown(values: Iterable[float] | float, around: float = 0.0) -> Any:
    """Numbers as a screen shows them: four digits of each, and never coarser than a ten-thousandth of their span.

    The second half matters for scores that lie close together far from zero, the first for a logarithmic axis. Numbers
    that are all the same have no span: the one of what is drawn ``around`` them stands for it.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return _round(float(array), around)
    span = (float(np.ptp(array)) if array.size else 0.0) or around
    return [_round(value, span) for value in array.ravel().tolist()]


def _round(value: float, span: float) -> float | int:
    if value == 0 or not math.isfinite(value):
        return value
    decimals = max(_digit(value), _digit(span) + 1) if 0 < span < math.inf else _digit(value)
    rounded = round(value, decimals)
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _digit(value: float) -> int:
    """How many decimals show four digits of a number of this size."""
    return _DIGITS - 1 - math.floor(math.log10(abs(value)))


def _trace(mark: Mark, figure: Figure, ends: Ends) -> Trace:
    match mark:
        case Line():
            return _line(mark, figure, ends)
        case Band():
            return _band(mark)
        case Points():
            return _points(mark)
        case Histogram():
            return _histogram(mark)
        case Bars():
            return _bars(mark)
        case Heatmap():
            return _heatmap(mark)
        case Text():
            return _words([mark])


def _scatter(
    name: str, x: Any, y: Any, position: Position, hover: str, around: tuple[float, float] = (0.0, 0.0), **more: Any
) -> Trace:
    hovering = {"hovertemplate": f"{_template(hover)}<extra></extra>"} if hover else {"hoverinfo": "skip"}
    series: Trace = {"type": "scatter", "mode": "lines", "name": plain(name)}
    series |= {axis: shown(values, span) for axis, values, span in zip("xy", (x, y), around)}
    return {**series, **hovering, "meta": {"colour": position}, **more}


def _template(hover: str) -> str:
    """A figure's format as plotly's template. No name of a user goes in, because plotly would read its ``%{...}``."""

    def field(found: re.Match[str]) -> str:
        name, index, spec = found[1], found[2] or "", found[3] or ""
        # d3 keeps the zeros that Python's g leaves out, unless asked not to
        field = f"%{{{_FIELDS.get(name, name)}{index}{re.sub('g$', '~g', spec)}}}"
        return f"<b>{field}</b>" if name == "name" else field

    return _FIELD.sub(field, hover).replace("\n", "<br>")


def _line(mark: Line, figure: Figure, ends: Ends) -> Trace:
    x, y = np.asarray(mark.x), np.asarray(mark.y)
    more: dict[str, Any] = {"mode": "lines+markers"} if mark.markers else {}
    chosen = np.arange(x.size) if mark.markers or mark.steps or mark.dotted else thin(*_views(x, y, figure, ends))
    stroke = _WIDTHS[mark.weight] | ({"dash": "dot"} if mark.dotted else {}) | ({"shape": "hv"} if mark.steps else {})
    if stroke:
        more["line"] = stroke
    if mark.beside:
        more["customdata"] = shown(np.asarray(mark.beside)[chosen])
    if not mark.listed:
        more["showlegend"] = False
    elif mark.weight == "heavy":
        more["opacity"] = 0.55
    spans = (ends["x"][1] - ends["x"][0], ends["y"][1] - ends["y"][0])
    return _scatter(mark.name, x[chosen], y[chosen], mark.position, mark.hover, spans, **more)


Places = NDArray[np.float64]


def _views(x: Places, y: Places, figure: Figure, ends: Ends) -> list[tuple[Places, Places]]:
    """A curve across its plot, both from 0 to 1, as it is first seen and with each axis that can be switched."""
    views = [(_across(x, figure.x, ends["x"]), _across(y, figure.y, ends["y"]))]
    if figure.x.log_range is not None:
        views.append((_logarithmic(x, figure.x.log_range), views[0][1]))
    return views


def _across(values: Places, axis: Axis, ends: tuple[float, float]) -> Places:
    if axis.scale == "log":
        return _logarithmic(values, axis.range or (float(values.min()), float(values.max())))
    if axis.range is not None:
        low, high = axis.range
    else:
        low, high = ends
        low = 0.0 if axis.from_zero else low
    return (values - low) / (high - low or 1.0)


def _ends(figure: Figure) -> Ends:
    """The least and the greatest number of all curves along each axis, found once for all of them."""
    lines = [mark for mark in figure.marks if isinstance(mark, Line)]
    along = {axis: [getattr(mark, axis) for mark in lines] for axis in ("x", "y")}
    return {axis: (min(map(min, each)), max(map(max, each))) if each else (0.0, 0.0) for axis, each in along.items()}


def _logarithmic(values: Places, ends: tuple[float, float]) -> Places:
    low, high = ends
    # zero has no place on a logarithmic axis; the left end stands for it
    return np.asarray(np.log(np.maximum(values, low) / low) / (math.log(high / low) or 1.0))


def _band(mark: Band) -> Trace:
    # drawn there and back, so that one trace has both ends
    some = np.unique(np.geomspace(1, len(mark.x), 60).round().astype(int)) - 1
    x, low, high = (np.asarray(each)[some] for each in (mark.x, mark.low, mark.high))
    corners = np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]])
    return _scatter(mark.name, *corners, mark.position, "", fill="toself", line={"width": 0})


def _points(mark: Points) -> Trace:
    more: dict[str, Any] = {"marker": {"size": 9 if mark.filled else 8}}
    if not mark.filled:
        more["meta"] = {"colour": mark.position, "open": True}
    more["mode"] = "markers+text" if mark.written else "markers"
    if mark.labels:
        more |= {"text": [plain(label) for label in mark.labels], "textposition": "top center"}
    if mark.low:
        y, low, high = (np.asarray(each) for each in (mark.y, mark.low, mark.high))
        ends = {"array": shown(high - y), "arrayminus": shown(y - low)}
        more["error_y"] = {"type": "data", "symmetric": False, **ends, "width": 0}
    return _scatter(mark.name, mark.x, mark.y, mark.position, mark.hover, **more)


def _histogram(mark: Histogram) -> Trace:
    """The middle of each bin, where a pointer meets it, and both ends.

    Plotly's shape ``hvh`` steps half-way between points, which for bins of one width is at their edges.
    """
    edges, heights = np.asarray(mark.edges), np.asarray(mark.heights)
    x = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    y = np.concatenate([heights[:1], heights, heights[-1:]])
    more: dict[str, Any] = {"fill": "tozeroy"} if mark.filled else {}
    stroke = {"shape": "hvh", "width": 0} if mark.filled else {"shape": "hvh"}
    return _scatter(mark.name, x, y, mark.position, mark.hover, line=stroke, **more)


def _bars(mark: Bars) -> Trace:
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(mark.name),
        "x": shown(mark.lengths),
        "y": [plain(name) for name in mark.names],
        "hovertemplate": f"{_template(mark.hover)}<extra></extra>",
        "meta": {"colour": mark.position},
    }


def _heatmap(mark: Heatmap) -> Trace:
    found: Trace = {
        "type": "heatmap",
        "z": [[None if value is None else shown(value) for value in row] for row in mark.values],
        "x": [plain(name) for name in mark.columns],
        "y": [plain(name) for name in mark.rows],
        "hovertemplate": f"{_template(mark.hover)}<extra></extra>",
        "meta": {"scale": "diverging" if mark.diverging else "sequential"},
    }
    if len(mark.columns) <= NAMED:
        found |= {"xgap": 1, "ygap": 1}
    for key, end in (("zmin", mark.low), ("zmax", mark.high)):
        if end is not None:
            found[key] = shown(end)
    if mark.written.endswith("%"):
        found["colorbar"] = {"tickformat": "~%"}
    if mark.beside:
        found["customdata"] = [[shown(cell) for cell in row] for row in mark.beside]
    if len(mark.columns) <= WRITTEN:
        found["texttemplate"] = "%{text}" if mark.texts else f"%{{z:{mark.written}}}"
    if mark.texts:
        found["text"] = [[plain(text) for text in row] for row in mark.texts]
    return found


def _words(marks: list[Text]) -> Trace:
    return {
        "type": "scatter",
        "mode": "text",
        "x": shown([mark.x for mark in marks]),
        "y": shown([mark.y for mark in marks]),
        "text": [plain(mark.text) for mark in marks],
        "textposition": [_SIDES[mark.side] for mark in marks],
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
        "meta": {"colour": "ink"},
    }


def _axis(axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {"title": {"text": plain(axis.label)}}
    if axis.scale == "names":
        # without its type plotly takes "2012" for a number and "may-1" for a date
        found |= {"type": "category", "categoryorder": "array", "categoryarray": [plain(n) for n in axis.categories]}
    if axis.scale == "log":
        # with a format of their own the ticks between powers of ten are whole numbers, and not their first digits
        found |= {"type": "log", "tickformat": ",", "nticks": 6}
    if axis.percent:
        found["tickformat"] = "~%"
    if axis.range is not None:
        found["range"] = shown(np.log10(axis.range)) if axis.scale == "log" else list(axis.range)
        if axis.range[0] == -axis.range[1]:
            found["zeroline"] = True
    if axis.from_zero:
        found["rangemode"] = "tozero"
    if axis.whole:
        found["tickformat"] = ",d"
    if axis.ticks:
        found |= {"tickvals": [value for value, _ in axis.ticks], "ticktext": [plain(text) for _, text in axis.ticks]}
    if not axis.shown:
        found["visible"] = False
    return found


def _height(figure: Figure) -> int:
    for mark in figure.marks:
        if isinstance(mark, Heatmap):
            return 150 + 24 * min(max(len(mark.rows), 4), NAMED)
        if isinstance(mark, Bars):
            return 120 + 26 * len(figure.y.categories)
    return _HEIGHTS[figure.shape]
