"""FigureLook: what an author chooses about a figure: names of methods and sets, width, font."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from oodscope.base.errors import UsageError
from oodscope.document.methods import NAMES, method_name

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTHS = {"column": 3.4, "page": 7.0}
"""Widths with names, in inches: one column of a two-column paper, and the whole of a page's text."""

_NARROWEST, _WIDEST = 1.0, 20.0
_METHOD = re.compile(r"([a-z0-9_]+)(\([^)]*\))?(\+[a-z0-9_]+(\([^)]*\))?)?( \([^)]*\))?")
"""A detector as tables call it: ``knn``, ``knn(k=10)``, ``react+msp``, ``vim (ood_val)``."""


@dataclass(frozen=True)
class FigureLook:
    """What an author chooses about a figure.

    Parameters
    ----------
    labels : what stands for a name, such as ``{"near_letters": "Letters"}``.
    paper_names : detectors are called as papers call them (``ebo``: Energy), unless ``labels`` says otherwise.
    width : inches; that of the figure by default. Pictures keep their shape, charts their height.
    font : a family that is installed here; that of the house by default.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    paper_names: bool = True
    width: float | None = None
    font: str = ""

    def named(self, text: str) -> str:
        """How the figure writes a name; every text that is no name stands for itself."""
        if text in self.labels:
            return self.labels[text]
        found = _METHOD.fullmatch(text)
        return method_name(text) if self.paper_names and found and found[1] in NAMES else text

    def apply(self, figure: Figure) -> None:
        """Give a figure its names and its width."""
        for panel in figure.axes:
            for axis in (panel.xaxis, panel.yaxis):
                _rename_ticks(axis, self)
            for text in (*panel.texts, panel.title):
                text.set_text(self.named(text.get_text()))
            _rename_legend(panel.get_legend(), self)
        for legend in figure.legends:
            _rename_legend(legend, self)
        if self.width is not None:
            wide, tall = figure.get_size_inches()
            pictures = any(panel.images for panel in figure.axes)
            figure.set_size_inches(self.width, tall * self.width / wide if pictures else tall)


_CURRENT: ContextVar[FigureLook | None] = ContextVar("look", default=None)


def named(text: str) -> str:
    """How the figure that is being drawn writes a name, for words that must be measured while it is drawn."""
    look = _CURRENT.get()
    return text if look is None else look.named(text)


@contextmanager
def drawing(look: FigureLook | None) -> Iterator[None]:
    """While it lasts, figures are drawn with this look."""
    token = _CURRENT.set(look)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def read_labels(texts: Sequence[str]) -> dict[str, str]:
    """Names from ``knn=KNN`` and ``near_letters=Letters``."""
    found = {}
    for text in texts:
        name, sign, words = text.partition("=")
        if not sign or not name or not words:
            raise UsageError(f"--labels {text}: write NAME=WORDS, such as near_letters=Letters")
        found[name] = words
    return found


def read_width(text: str) -> float | None:
    """``column``, ``page`` or a number of inches."""
    if not text:
        return None
    if text in WIDTHS:
        return WIDTHS[text]
    try:
        width = float(text)
    except ValueError:
        raise UsageError(f"--width {text}: write column, page or a number of inches, such as 5.5") from None
    if not _NARROWEST <= width <= _WIDEST:
        raise UsageError(f"--width {text}: between {_NARROWEST:g} and {_WIDEST:g} inches")
    return width


def check_font(family: str) -> str:
    """The family, if it is installed here."""
    from matplotlib import font_manager  # reads the list of fonts

    known = sorted({entry.name for entry in font_manager.fontManager.ttflist})
    if family and family not in known:
        close = get_close_matches(family, known, 3) or known[:3]
        raise UsageError(f"--font {family}: not installed here. Did you mean {' or '.join(map(repr, close))}?")
    return family


def _rename_ticks(axis: Axis, look: FigureLook) -> None:
    from matplotlib.ticker import FixedLocator

    if isinstance(axis.get_major_locator(), FixedLocator):
        texts = [label.get_text() for label in axis.get_majorticklabels()]
        names = [look.named(text) for text in texts]
        if names != texts:
            axis.set_ticklabels(names)


def _rename_legend(legend: object, look: FigureLook) -> None:
    from matplotlib.legend import Legend

    if isinstance(legend, Legend):
        for text in legend.get_texts():
            text.set_text(look.named(text.get_text()))
