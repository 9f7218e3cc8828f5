"""Risk-coverage curves: the most familiar images are accepted first; how many failures come along?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oodscope.metrics.rejection.selective import Selection
from oodscope.report.plots.marks import guide, layout, line, percents
from oodscope.report.plots.plot import PlotlyFigure, figure_name
from oodscope.report.plots.population import Population, population
from oodscope.report.plots.positions import detector_positions
from oodscope.report.plots.thinning import thin
from oodscope.results.scoretable import ScoreTable

_HOVER = "<b>%{fullData.name}</b><br>accepts %{x:.1%} of the images<br>%{y:.2%} of those are failures"


def risk_coverage(scores: ScoreTable, set: str, detectors: Sequence[str] | None = None) -> PlotlyFigure:
    """Selective risk against coverage on one set (a foreign one joined with ``id_test``), a curve for each detector.

    Parameters
    ----------
    detectors : in the order of their colours; all, in the order of the table, by default.
    """
    among = population(scores, set)
    places = detector_positions(detectors or scores.detectors)
    curves = [_curve(scores, among, detector, place) for detector, place in places.items()]
    failures = 1.0 - float(among.correct.mean())
    return PlotlyFigure(
        figure_name("risk", set),
        f"{among.words}: risk against coverage",
        "Images are accepted from the lowest score up. Risk is the share of accepted images that the classifier gets "
        "wrong or that are foreign: lower is better. The dotted line is the order of a coin; the legend gives the area "
        "under each curve (AURC, in percent).",
        (*curves, guide([0.0, 1.0], [failures, failures])),
        layout(percents("coverage: share of images accepted", range=[0, 1]), percents("risk", rangemode="tozero")),
    )


def _curve(scores: ScoreTable, among: Population, detector: str, place: int) -> dict[str, Any]:
    selection = Selection(scores.scores(detector)[among.rows], among.correct)
    coverage, risk = selection.curve()
    # risk jumps wildly among the first few images, and the axis need not be stretched to show that
    top = max(float(risk.max()), float(np.finfo(float).tiny))
    kept = thin((coverage, risk / top))
    aurc = 100 * float(selection.acceptance.aurc())
    return line(coverage[kept], risk[kept], f"{detector} ({aurc:.2f})", place, _HOVER)
