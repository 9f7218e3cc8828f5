"""ROC curves: what a detector catches against what it flags by mistake."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.metrics.ranking.ranking import Ranking
from oodscope.report.plots.marks import guide, layout, line, percents
from oodscope.report.plots.plot import PlotlyFigure, figure_name, shown
from oodscope.report.plots.positions import detector_positions, set_positions
from oodscope.report.plots.thinning import thin
from oodscope.results.scoretable import ScoreTable

Numbers = NDArray[np.float64]

_HOVER = "<b>%{fullData.name}</b><br>catches %{y:.2%} of OOD<br>flags %{x:.2~%} of ID by mistake"
_WORDS = (
    "The further to the upper left, the better; the dotted line is chance. A logarithmic axis shows what is caught "
    "while false alarms are rare."
)


def roc_of_detector(scores: ScoreTable, detector: str, *, shifted: bool = False) -> PlotlyFigure:
    """One detector, a curve for each near and far set.

    Parameters
    ----------
    shifted : covariate-shifted images count as ID, pooled with ``id_test``, as in full-spectrum detection.
    """
    known = _known(scores, detector, shifted)
    places = set_positions(scores)
    curves = [
        _trace(Ranking(known, scores.scores(detector, role=role, set=name)), name, places[name])
        for role in ("near", "far")
        for name in scores.sets(role)
    ]
    id_words = "id_test and csid, pooled" if shifted else "id_test"
    name = figure_name("roc", "shifted" if shifted else "plain", detector)
    return PlotlyFigure(
        name,
        f"{detector}: ROC, ID is {id_words}",
        f"{_WORDS} AUROC is given in the legend.",
        (*curves, _chance()),
        _layout(known.size),
    )


def roc_of_set(scores: ScoreTable, set: str, detectors: Sequence[str] | None = None) -> PlotlyFigure:
    """One near or far set, a curve for each detector, best first in the legend.

    Parameters
    ----------
    detectors : in the order of their colours; all, in the order of the table, by default.
    """
    places = detector_positions(detectors or scores.detectors)
    curves = {}
    for detector, place in places.items():
        known = scores.scores(detector, role="id_test")
        ranking = Ranking(known, scores.scores(detector, set=set))
        curves[detector] = (ranking.auroc, _trace(ranking, detector, place))
    ordered = [trace for _, trace in sorted(curves.values(), key=lambda each: -each[0])]
    n_id = scores.scores(scores.detectors[0], role="id_test").size
    return PlotlyFigure(
        figure_name("roc", "set", set),
        f"{set}: ROC of every detector",
        f"{_WORDS} AUROC is given in the legend, best first.",
        (*ordered, _chance()),
        _layout(n_id),
    )


def _known(scores: ScoreTable, detector: str, shifted: bool) -> Numbers:
    roles = ("id_test", "csid") if shifted else ("id_test",)
    return np.concatenate([scores.scores(detector, role=role) for role in roles])


def _trace(ranking: Ranking, name: str, place: int) -> dict[str, Any]:
    fpr, tpr = ranking.roc()
    # zero has no place on a logarithmic axis; half an image stands for none
    least = 0.5 / ranking.n_id
    logarithmic = 1.0 - np.log(np.maximum(fpr, least)) / np.log(least)
    kept = thin((fpr, tpr), (logarithmic, tpr))
    return line(fpr[kept], tpr[kept], f"{name} ({100 * ranking.auroc:.1f})", place, _HOVER)


def _chance() -> dict[str, Any]:
    # straight on a linear axis, bent on a logarithmic one: points all along it
    along = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 41)]).tolist()
    return guide(along, along)


def _layout(n_id: int) -> dict[str, Any]:
    log_range = shown([np.log10(0.5 / n_id), 0.0])
    return layout(
        percents("ID flagged by mistake (false-positive rate)", range=[-0.01, 1.01]),
        percents("OOD caught (true-positive rate)", range=[-0.01, 1.01]),
        height=440,
        meta={"log_axis": "x", "log_range": log_range},
    )
