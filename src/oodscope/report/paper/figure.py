"""PaperFigure: a figure as a paper printed it, drawn from anybody's runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import oodscope.report.paper
from oodscope.base.errors import DataError
from oodscope.base.registry import Collection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oodscope.report.paper.look import FigureLook
    from oodscope.results.run import Run


@dataclass(frozen=True)
class PaperFigure:
    """One figure of one paper.

    Parameters
    ----------
    name : how commands call it, such as ``openood-6``.
    paper : short title, such as ``OpenOOD v1.5``.
    number : what the paper calls it, such as ``Fig. 6``; empty for one that the paper lacks.
    needs : the runs that it wants, in one line for people.
    draw : from opened runs to a figure; runs that do not fit raise an error that names what is missing. With a
        ``metric``, from runs and the name of a metric.
    metric : what it shows unless another is asked for; empty where there is no choice.
    """

    name: str
    paper: str
    number: str
    needs: str
    draw: Callable[..., Figure]
    metric: str = ""

    def drawn(self, runs: Sequence[Run], metric: str = "", look: FigureLook | None = None) -> Figure:
        """The figure in the house style: its fonts, sizes and colours do not depend on the reader's settings.

        Runs that do not fit are refused with what is missing and what the figure needs, in one line.

        Parameters
        ----------
        look : names, width and font of the author's choice; the names that runs have, and the house's width and font,
            unless given.
        """
        from oodscope.report.paper.look import drawing
        from oodscope.report.paper.style import house_style

        if metric and not self.metric:
            raise DataError(f"{self.name} shows one thing only; it has no choice of metric")
        try:
            with house_style("" if look is None else look.font), drawing(look):
                figure = self.draw(runs, metric or self.metric) if self.metric else self.draw(runs)
                if look is not None:
                    look.apply(figure)
                return figure
        except DataError as error:
            raise DataError(f"{self.name}: {error}. It needs: {self.needs}") from error


@cache
def _own() -> dict[str, PaperFigure]:
    """Every ``FIGURES`` of the modules beside this one, imported when the first figure is asked for."""
    figures: dict[str, PaperFigure] = {}
    for module in iter_modules(oodscope.report.paper.__path__, "oodscope.report.paper."):
        # this module's own FIGURES is the collection, not a part of it
        own = () if module.name == __name__ else getattr(import_module(module.name), "FIGURES", ())
        figures |= {figure.name: figure for figure in own}
    return figures


FIGURES: Collection[PaperFigure] = Collection(
    "figure",
    "figures",
    _own,
    check=lambda each: isinstance(each, PaperFigure),
    expected="a PaperFigure of oodscope.report.paper.figure",
)
"""Every figure by its name. A module of this folder adds to them with a tuple ``FIGURES`` of its own."""
