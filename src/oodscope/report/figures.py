"""The figures of the report, drawn from the score table: histograms and ROC curves."""

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup

from oodscope.metrics import Ranking
from oodscope.report.plots.bins import shares
from oodscope.report.svg import Numbers, Plot, bars, caption, drawing, polyline, x_axis, y_axis

POINTS = 200
COLOURS = 6


def style_of(index: int) -> str:
    """The style of the index-th OOD set: six colours, then the same with another dash."""
    return f"c{index % COLOURS} d{index // COLOURS % 3}"


def histogram(id_scores: Numbers, scores: Numbers, edges: Numbers, title: str, style: str) -> Markup:
    """How the scores of one set lie beside those of ID; scores beyond the ends count in the last bars."""
    heights = [shares(sample, edges) for sample in (id_scores, scores)]
    plot = Plot(236, 116, (edges[0], edges[-1]), (0.0, max(float(share.max()) for share in heights)))
    ticks = [(value, f"{value:.3g}") for value in (edges[0], (edges[0] + edges[-1]) / 2, edges[-1])]
    marks = [
        bars(plot, edges, heights[0], "id"),
        bars(plot, edges, heights[1], style),
        x_axis(plot, ticks),
    ]
    return drawing(plot, title, marks)


def roc(id_scores: Numbers, ood_sets: Mapping[str, Numbers], styles: Mapping[str, str], title: str) -> Markup:
    """One curve per OOD set: the share of it that is caught, against the share of ID flagged by mistake."""
    plot = Plot(276, 264, (0.0, 1.0), (0.0, 1.0), left=40, bottom=36, top=10, right=10)
    percents = [(share, f"{100 * share:.0f}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    ends = np.array([0.0, 1.0])
    curves = []
    for name, scores in ood_sets.items():
        fpr, tpr = Ranking(id_scores, scores).roc(POINTS)
        curves.append(polyline(plot, fpr, tpr, styles[name]))
    marks = [
        y_axis(plot, percents),
        x_axis(plot, percents),
        polyline(plot, ends, ends, "chance"),
        *curves,
        caption(plot.width - plot.right, plot.height - 6, "% of ID flagged by mistake", "end"),
        Markup('<text transform="translate(11 {}) rotate(-90)" text-anchor="middle">% of OOD caught</text>').format(
            (plot.height - plot.bottom + plot.top) // 2
        ),
    ]
    return drawing(plot, title, marks)
