"""DER curves: what every threshold would cost in wrong decisions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oodscope.metrics.rejection.rejection import Rejection
from oodscope.report.plots.marks import guide, layout, line, percents
from oodscope.report.plots.plot import PlotlyFigure, figure_name, shown
from oodscope.report.plots.population import Population, population
from oodscope.report.plots.positions import detector_positions
from oodscope.report.plots.thinning import thin
from oodscope.results.scoretable import ScoreTable

_HOVER = (
    "<b>%{fullData.name}</b><br>threshold %{customdata:.4~g}: keeps %{x:.1%} of the images<br>"
    "%{y:.2%} of the decisions are wrong"
)


def der_curves(scores: ScoreTable, set: str, detectors: Sequence[str] | None = None) -> PlotlyFigure:
    """DER against the share that a threshold keeps, on one set (a foreign one joined with ``id_test``).

    Thresholds of different detectors have no common scale; what they keep has. The threshold itself is what a pointer
    shows.

    Parameters
    ----------
    detectors : in the order of their colours; all, in the order of the table, by default.
    """
    among = population(scores, set)
    places = detector_positions(detectors or scores.detectors)
    curves = [_curve(scores, among, detector, place) for detector, place in places.items()]
    accuracy = float(among.correct.mean())
    return PlotlyFigure(
        figure_name("der", set),
        f"{among.words}: wrong decisions at every threshold (DER)",
        "A decision is wrong if a correct image is rejected, or a wrong or foreign one kept: lower is better. At the "
        "left end all is rejected, at the right end all is kept, so that the classifier stands alone. The dotted line "
        "is the best that any detector could do; the legend gives each curve's lowest point.",
        (*curves, guide([0.0, accuracy, 1.0], [accuracy, 0.0, 1.0 - accuracy])),
        layout(percents("share of images kept", range=[0, 1]), percents("DER", rangemode="tozero")),
    )


def _curve(scores: ScoreTable, among: Population, detector: str, place: int) -> dict[str, Any]:
    thresholds, decisions = Rejection(scores.scores(detector)[among.rows], among.correct).curve()
    kept = (decisions.kept_correct + decisions.kept_wrong) / decisions.n
    der = decisions.der
    chosen = thin((kept, der / der.max()))
    # above the last score everything is kept; plotly has no infinity, and any larger number would do
    finite = np.where(np.isfinite(thresholds), thresholds, thresholds[-2])[chosen]
    name = f"{detector} ({100 * der.min():.2f})"
    return line(kept[chosen], der[chosen], name, place, _HOVER, customdata=shown(finite))
