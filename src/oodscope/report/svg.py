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


_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#c2569a", "#b87a00", "#3d9fd6")
_STYLE = (
    "text{fill:#5a636e;font:11px sans-serif}.axis,.leader{stroke:#5a636e;fill:none}.grid{stroke:#dfe3e8;fill:none}"
    ".ruler{stroke:#1c2024;stroke-width:2}.joined{stroke:#1c2024;stroke-width:4;stroke-linecap:round}"
    ".line{fill:none;stroke:var(--colour);stroke-width:1.8}.band{fill:#8b939e;fill-opacity:.22}"
    ".part{fill:var(--colour)}.d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}"
) + "".join(f".c{index}{{--colour:{colour}}}" for index, colour in enumerate(_COLOURS))
"""What a page's style sheet would say, for a drawing that leaves the page."""


def style_of(index: int) -> str:
    """The style of the index-th line or set: six colours, then the same with another dash."""
    return f"c{index % len(_COLOURS)} d{index // len(_COLOURS) % 3}"


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


def standalone(svg: Markup) -> str:
    """A drawing as a file of its own: the light colours of the page inside, text in any sans-serif."""
    head, rest = svg.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{_STYLE}</style>{rest}\n'


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


def band(plot: Plot, x: Numbers, low: Numbers, high: Numbers, style: str) -> Markup:
    """The area between two lines."""
    across = plot.across(np.concatenate([x, x[::-1]])).tolist()
    down = plot.down(np.concatenate([low, high[::-1]])).tolist()
    path = " ".join(f"{_short(a)},{_short(b)}" for a, b in zip(across, down))
    return Markup('<polygon class="band {}" points="{}"/>').format(style, path)


def segment(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A straight line between two places, in pixels."""
    ends = (_short(x1), _short(y1), _short(x2), _short(y2))
    return Markup('<path class="{}" d="M{} {}L{} {}"/>').format(style, *ends)


def box(x: float, y: float, width: float, height: float, style: str, words: str) -> Markup:
    """A filled rectangle, in pixels; ``words`` is what a pointer shows."""
    sides = (_short(x), _short(y), _short(width), _short(height))
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
        style, *sides, words
    )


def bars(plot: Plot, edges: Numbers, heights: Numbers, style: str) -> Markup:
    """Adjoining bars on the base line, drawn as one outline: a tenth of the size of separate rectangles."""
    x, y = plot.across(edges).tolist(), plot.down(heights).tolist()
    base = _short(float(plot.down(plot.y[0])))
    steps = "".join(f"V{_short(top)}H{_short(right)}" for top, right in zip(y, x[1:]))
    return Markup('<path class="bars {}" d="M{} {}{}V{}Z"/>').format(style, _short(x[0]), base, steps, base)


def _short(pixels: float) -> str:
    """A tenth of a pixel is finer than any screen; more digits would only make the file larger."""
    return escape(f"{pixels:.1f}".removesuffix(".0"))
