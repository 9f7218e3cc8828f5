"""PlotlyFigure: an interactive plot as plain data, its colours left to the page."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import Any

import numpy as np

from oodscope.base.errors import DataError

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_DIGITS = 4
_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@dataclass(frozen=True)
class PlotlyFigure:
    """One plot in the vocabulary of plotly.js; no Python package of that name is needed to write it.

    Colours are positions in the page's palette: ``meta.colour`` of a trace is the number of a set or detector (six
    colours, then the same with another dash), or ``"id"``, ``"ink"``, ``"soft"`` or ``"best"``; ``meta.scale`` of a
    heatmap is ``"sequential"`` or ``"diverging"``. ``layout.meta.log_axis`` names the axis (``"x"`` or ``"y"``) that a
    reader may switch to a logarithmic one.

    Parameters
    ----------
    name : unique within a page; becomes the id of its ``div``. ``figure_name`` makes one from any words.
    title, words : heading and caption, as plain text; the caption says what is seen and which direction is better.
    data, layout : traces and layout of plotly. Text of users goes through ``plain`` first.
    """

    name: str
    title: str
    words: str
    data: tuple[Mapping[str, Any], ...]
    layout: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DataError(f"a figure cannot be called {self.name!r}: small letters, digits and hyphens only")

    def json(self) -> str:
        """Traces and layout as JSON that can stand inside a ``<script>`` element: no HTML, finite numbers only."""
        content = {"data": self.data, "layout": self.layout}
        try:
            text = json.dumps(content, separators=(",", ":"), allow_nan=False)
        except ValueError as error:
            raise DataError(f"figure {self.name}: a number is NaN or infinite and cannot be drawn") from error
        return text.translate(_MARKUP)


def figure_name(*words: str) -> str:
    """A name for a figure about these words; what letters cannot say is told apart by a hash."""
    readable = "-".join(part for word in words for part in re.findall(r"[a-z0-9]+", word.lower()))
    if readable == "-".join(words):
        return readable
    # a byte between the words, so that ("a-b", "c") and ("a", "b-c") differ
    return f"{readable}-{sha256(chr(0).join(words).encode()).hexdigest()[:6]}".lstrip("-")


def plain(text: str) -> str:
    """Text of a user as plotly shows it letter by letter: plotly reads a little HTML in labels."""
    return escape(text, quote=False)


def shown(values: Iterable[float] | float) -> Any:
    """Numbers as a screen shows them: four digits of each, and never coarser than a ten-thousandth of their span.

    The second half matters for scores that lie close together far from zero, the first for a logarithmic axis.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return _round(float(array), 0.0)
    span = float(np.ptp(array)) if array.size else 0.0
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
