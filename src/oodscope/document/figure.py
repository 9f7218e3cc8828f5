"""Figure: what a plot shows, as plain data without pixels or colours; the renderers of the report draw it.

A series has a *position*, not a colour: detector 3 is drawn in the same colour in every figure of a page, whatever the
theme of the page or the print of a paper makes of it.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError

Position = int | Literal["id", "ink", "soft", "best"]
"""The place of a detector or set among its kind; or ID images, the colour of text, of lesser text, of the leader."""

Numbers = tuple[float, ...]
Matrix = tuple[tuple[float | None, ...], ...]

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Axis:
    """One axis.

    Parameters
    ----------
    scale : ``"names"`` has a place for each of ``categories``: x from the left, y from the top.
    percent : values are shares of 1, read in percent.
    range : values at both ends; what the marks span, unless given. ``from_zero``: the lower end is 0.
    ticks : (value, label) pairs in place of round numbers. ``whole``: ticks at whole numbers only.
    log_range : a reader may switch to a logarithmic axis with these ends.
    shown : without it there is neither line nor label.
    """

    label: str = ""
    scale: Literal["linear", "log", "names"] = "linear"
    percent: bool = False
    range: tuple[float, float] | None = None
    from_zero: bool = False
    whole: bool = False
    categories: tuple[str, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    log_range: tuple[float, float] | None = None
    shown: bool = True


@dataclass(frozen=True)
class Line:
    """A line through points.

    Parameters
    ----------
    hover : what a pointer reads, as a format of ``{name}``, ``{x}``, ``{y}`` and ``{beside}``, whose number formats
        mean the same in Python and d3 (such as ``.2%``); a line break is ``\\n``. Never text of a user.
    beside : a further number for each point.
    markers : a mark at each point. ``steps``: level from each point to the next.
    listed : whether the legend names it.
    """

    name: str
    x: Numbers
    y: Numbers
    position: Position
    hover: str = ""
    beside: Numbers = ()
    markers: bool = False
    steps: bool = False
    dotted: bool = False
    weight: Literal["thin", "normal", "heavy"] = "normal"
    listed: bool = True


@dataclass(frozen=True)
class Band:
    """The area between two lines over the same x."""

    name: str
    x: Numbers
    low: Numbers
    high: Numbers
    position: Position


@dataclass(frozen=True)
class Points:
    """Points with intervals.

    Parameters
    ----------
    low, high : ends of the interval of each point along y; empty where there are none.
    labels : the name of each point; ``written`` ones stand beside their points, others are for pointers alone.
    filled : an open mark otherwise.
    """

    name: str
    x: Numbers
    y: Numbers
    position: Position
    low: Numbers = ()
    high: Numbers = ()
    labels: tuple[str, ...] = ()
    written: bool = False
    filled: bool = True
    hover: str = ""


@dataclass(frozen=True)
class Histogram:
    """Heights over bins of one width: a stepped line, or an area if ``filled``."""

    name: str
    edges: Numbers
    heights: Numbers
    position: Position
    filled: bool = False
    hover: str = ""


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, one for each name on the y axis; bars of several marks on one name stand end to end."""

    name: str
    names: tuple[str, ...]
    lengths: Numbers
    position: Position
    hover: str = ""


@dataclass(frozen=True)
class Heatmap:
    """A matrix whose numbers are written in; ``None`` stays empty.

    Parameters
    ----------
    written : Python's format of a number in its field. ``texts``: what stands there instead.
    low, high : values of the palest and the strongest colour; those of the matrix unless given.
    diverging : both ends are strong and their middle is pale.
    beside : further numbers of each field, for ``hover``, which may also name ``{row}`` and ``{column}``.
    strong : fields whose number is bold.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Matrix
    written: str
    low: float | None = None
    high: float | None = None
    diverging: bool = False
    hover: str = ""
    beside: tuple[tuple[Numbers, ...], ...] = ()
    texts: tuple[tuple[str, ...], ...] = ()
    strong: tuple[tuple[bool, ...], ...] = ()


@dataclass(frozen=True)
class Text:
    """Words at a place of the plot; ``side`` says where they stand from it."""

    x: float
    y: float
    text: str
    side: Literal["left", "right", "above", "below", "middle"] = "right"


Mark = Line | Band | Points | Histogram | Bars | Heatmap | Text


@dataclass(frozen=True)
class Figure:
    """One plot.

    Parameters
    ----------
    name : unique within a page: small letters, digits and hyphens. ``figure_name`` makes one from any words.
    title, caption : plain text; the caption says what is seen and which direction is better.
    marks : in the order in which they are drawn and listed.
    legend : whether series are listed.
    shape : ``"equal"``: one unit is as long on both axes.
    """

    name: str
    title: str
    caption: str
    marks: tuple[Mark, ...]
    x: Axis = Axis()
    y: Axis = Axis()
    legend: bool = True
    shape: Literal["wide", "square", "low", "equal"] = "wide"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DataError(f"a figure cannot be called {self.name!r}: small letters, digits and hyphens only")
        if not all(_finite(value) for mark in self.marks for value in vars(mark).values()):
            raise DataError(f"figure {self.name}: a number is NaN or infinite and cannot be drawn")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold; each mark says its ``kind``."""
        marks = [{"kind": type(mark).__name__.lower(), **asdict(mark)} for mark in self.marks]
        return {**asdict(self), "marks": marks}


def figure_name(*words: str) -> str:
    """A name for a figure about these words; what letters cannot say is distinguished by a hash."""
    readable = "-".join(part for word in words for part in re.findall(r"[a-z0-9]+", word.lower()))
    if readable == "-".join(words):
        return readable
    # a byte between the words, so that ("a-b", "c") and ("a", "b-c") differ
    return f"{readable}-{sha256(chr(0).join(words).encode()).hexdigest()[:6]}".lstrip("-")


def positions_of(names: Iterable[str]) -> dict[str, int]:
    """Each name's position, in the order given; a page gives the same positions to all its figures."""
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def drawn_positions(
    every: Sequence[str], drawn: Sequence[str] | None, positions: Mapping[str, Position] | None
) -> dict[str, Position]:
    """The series that a figure draws, each with its position.

    Parameters
    ----------
    drawn : which of ``every``; all by default.
    positions : of the series on the page; their places among those drawn by default.
    """
    names = list(drawn or every)
    places: Mapping[str, Position] = positions or positions_of(names)
    return {name: places[name] for name in names}


def numbers(values: ArrayLike) -> Numbers:
    """An array as the numbers of a mark."""
    return tuple(np.asarray(values, dtype=np.float64).ravel().tolist())


def matrix(values: ArrayLike) -> Matrix:
    """A two-dimensional array as the numbers of a heatmap; NaN becomes ``None``."""
    rows: list[list[float]] = np.asarray(values, dtype=np.float64).tolist()
    return tuple(tuple(None if math.isnan(value) else value for value in row) for row in rows)


def guide(x: Sequence[float], y: Sequence[float]) -> Line:
    """A dotted line to compare with, such as chance; no legend names it."""
    return Line("", numbers(x), numbers(y), "soft", dotted=True, weight="thin", listed=False)


def _finite(value: object) -> bool:
    """Whether no number of a mark's field is NaN or infinite; what is no number is."""
    if isinstance(value, tuple):
        try:
            # without a step of Python for each: curves of a report hold millions of numbers
            return all(map(math.isfinite, value))
        except TypeError:
            return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
