"""The figures of the papers whose protocols the package has, drawn from stored runs with matplotlib."""

from oodscope.report.paper.figure import FIGURES, PaperFigure, find_figure

__all__ = ["FIGURES", "PaperFigure", "find_figure"]
