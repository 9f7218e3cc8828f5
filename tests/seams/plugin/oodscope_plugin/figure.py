"""A figure of a paper: the headline number of every detector of the first run."""

from matplotlib.figure import Figure

from oodscope.base.errors import DataError
from oodscope.report.paper.figure import PaperFigure


def _draw(runs):
    evaluations = [run for run in runs if run.kind == "evaluation"]
    if not evaluations:
        raise DataError("no evaluation among these runs")
    table = evaluations[0].table()
    figure = Figure(layout="constrained")
    panel = figure.subplots()
    panel.barh([row.name for row in table.rows], [row.numbers[0].value for row in table.rows])
    return figure


FIGURE = PaperFigure("plugin-1", "A plugin", "Fig. 1", "one evaluation", _draw)
