"""A few marks of SVG: enough for a histogram and a curve, with colours left to the page's style sheet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_SVG = Markup(
    '<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{title}">'
    "<title>{title}</title>{marks}</svg>"
)


@dataclass(frozen=True)
class Plot:
    """A drawing with one pair of axes: sizes in pixels, and the values at the ends of both axes."""

    width: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float]
    left: int = 8
    bottom: int = 20
    top: int = 8
    right: int = 8

    def across(self, values: Numbers | float) -> Numbers:
        """Pixels from the left edge for values on the x axis."""
        share = (np.asarray(values, dtype=np.float64) - self.x[0]) / (self.x[1] - self.x[0])
        return self.left + share * (self.width - self.left - self.right)

    def down(self, values: Numbers | float) -> Numbers:
        """Pixels from the upper edge for values on the y axis."""
        share = (np.asarray(values, dtype=np.float64) - self.y[0]) / (self.y[1] - self.y[0])
        return self.height - self.bottom - share * (self.height - self.bottom - self.top)


def drawing(plot: Plot, title: str, marks: Iterable[Markup]) -> Markup:
    """The whole picture; ``title`` is what a screen reader says and a pointer shows."""
    return _SVG.format(width=plot.width, height=plot.height, title=title, marks=Markup("").join(marks))


def x_axis(plot: Plot, ticks: Sequence[tuple[float, str]]) -> Markup:
    """The base line with labelled ticks."""
    base = plot.height - plot.bottom
    line = Markup('<path class="axis" d="M{} {}H{}"/>').format(plot.left, base, plot.width - plot.right)
    label = Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>')
    texts = []
    for value, text in ticks:
        x = float(plot.across(value))
        # a label at an end would stick out of the picture
        anchor = "start" if x < plot.left + 12 else "end" if x > plot.width - plot.right - 12 else "middle"
        texts.append(label.format(_short(x), base + 14, anchor, text))
    return line + Markup("").join(texts)


def y_axis(plot: Plot, ticks: Sequence[tuple[float, str]]) -> Markup:
    """Labelled lines across the picture."""
    mark = Markup('<path class="grid" d="M{} {}H{}"/><text x="{}" y="{}" text-anchor="end">{}</text>')
    return Markup("").join(
        mark.format(plot.left, _short(y), plot.width - plot.right, plot.left - 4, _short(y + 4), text)
        for y, text in ((float(plot.down(value)), text) for value, text in ticks)
    )


def caption(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    """A line of text."""
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(_short(x), _short(y), anchor, text)


def polyline(plot: Plot, x: Numbers, y: Numbers, style: str) -> Markup:
    """A line through the points."""
    points = zip(plot.across(x).tolist(), plot.down(y).tolist())
    path = " ".join(f"{_short(a)},{_short(b)}" for a, b in points)
    return Markup('<polyline class="line {}" points="{}"/>').format(style, path)


def bars(plot: Plot, edges: Numbers, heights: Numbers, style: str) -> Markup:
    """Adjoining bars on the base line, drawn as one outline: a tenth of the size of separate rectangles."""
    x, y = plot.across(edges).tolist(), plot.down(heights).tolist()
    base = _short(float(plot.down(plot.y[0])))
    steps = "".join(f"V{_short(top)}H{_short(right)}" for top, right in zip(y, x[1:]))
    return Markup('<path class="bars {}" d="M{} {}{}V{}Z"/>').format(style, _short(x[0]), base, steps, base)


def _short(pixels: float) -> str:
    """A tenth of a pixel is finer than any screen; more digits would only make the file larger."""
    return escape(f"{pixels:.1f}".removesuffix(".0"))
