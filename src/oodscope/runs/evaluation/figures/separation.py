"""How far a detector's scores separate OOD from ID: ROC curves and histograms."""

from collections.abc import Mapping, Sequence

import numpy as np

from oodscope.document.bins import bin_shares, shared_edges
from oodscope.document.figure import (
    Axis,
    Figure,
    Histogram,
    Line,
    Position,
    drawn_positions,
    figure_name,
    guide,
    numbers,
    positions_of,
)
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.results.scoretable import ScoreTable

_COMPARED = ("near", "far", "csid")
"""Roles of the sets that are compared with ID, in the order in which they take their positions."""

_ROC_HOVER = "{name}\ncatches {y:.2%} of OOD\nflags {x:.2%} of ID by mistake"
_ROC_CAPTION = (
    "The further to the upper left, the better; the dotted line is chance. A logarithmic axis shows what is caught "
    "while false alarms are rare."
)


def roc_of_detector(scores: ScoreTable, detector: str, *, shifted: bool = False) -> Figure:
    """One detector, a curve for each near and far set.

    Parameters
    ----------
    shifted : covariate-shifted images count as ID, pooled with ``id_test``, as in full-spectrum detection.
    """
    roles = ("id_test", "csid") if shifted else ("id_test",)
    known = np.concatenate([scores.scores(detector, role=role) for role in roles])
    places = set_positions(scores)
    curves = [
        _curve(Ranking(known, scores.scores(detector, role=role, set=name)), name, places[name])
        for role in ("near", "far")
        for name in scores.sets(role)
    ]
    id_words = "id_test and csid, pooled" if shifted else "id_test"
    return _roc(
        figure_name("roc", "shifted" if shifted else "plain", detector),
        f"{detector}: ROC, ID is {id_words}",
        f"{_ROC_CAPTION} AUROC is given in the legend.",
        curves,
        known.size,
    )


def roc_of_set(
    scores: ScoreTable,
    set: str,
    detectors: Sequence[str] | None = None,
    positions: Mapping[str, Position] | None = None,
) -> Figure:
    """One near or far set, a curve for each detector, best first in the legend.

    Parameters
    ----------
    detectors : all, in the order of the table, by default.
    positions : of detectors on the page; their places among ``detectors`` by default.
    """
    places = drawn_positions(scores.detectors, detectors, positions)
    curves = []
    for detector, place in places.items():
        ranking = Ranking(scores.scores(detector, role="id_test"), scores.scores(detector, set=set))
        curves.append((ranking.auroc, _curve(ranking, detector, place)))
    return _roc(
        figure_name("roc", "set", set),
        f"{set}: ROC of every detector",
        f"{_ROC_CAPTION} AUROC is given in the legend, best first.",
        [curve for _, curve in sorted(curves, key=lambda each: -each[0])],
        scores.scores(scores.detectors[0], role="id_test").size,
    )


def score_histograms(scores: ScoreTable, detector: str) -> Figure:
    """The scores of one detector: ID as an area, a line for each near, far and shifted set, all in the same bins."""
    places = set_positions(scores)
    known = scores.scores(detector, role="id_test")
    others = {name: scores.scores(detector, role=role, set=name) for role in _COMPARED for name in scores.sets(role)}
    edges = shared_edges([known, *others.values()])
    hover = "{name}: {y:.2%} of its images"
    return Figure(
        figure_name("scores", detector),
        f"{detector}: scores of every set",
        "Share of the images of a set in each bin, larger score = more OOD. The less the lines of OOD sets overlap the "
        "grey area of ID, the better. Scores beyond the ends count in the outermost bins; a click in the legend "
        "hides a set.",
        (
            Histogram("ID", numbers(edges), numbers(bin_shares(known, edges)), "id", filled=True, hover=hover),
            *(
                Histogram(name, numbers(edges), numbers(bin_shares(sample, edges)), places[name], hover=hover)
                for name, sample in others.items()
            ),
        ),
        Axis(f"score of {detector}"),
        Axis("share of the set", percent=True, from_zero=True),
    )


def set_positions(scores: ScoreTable) -> dict[str, int]:
    """Every set that is compared with ID: near ones, far ones, then shifted ones."""
    return positions_of(name for role in _COMPARED for name in scores.sets(role))


def _curve(ranking: Ranking, name: str, position: Position) -> Line:
    fpr, tpr = ranking.roc()
    return Line(f"{name} ({100 * ranking.auroc:.1f})", numbers(fpr), numbers(tpr), position, _ROC_HOVER)


def _roc(name: str, title: str, caption: str, curves: Sequence[Line], n_id: int) -> Figure:
    # straight on a linear axis, bent on a logarithmic one: points all along it
    along = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 41)]).tolist()
    return Figure(
        name,
        title,
        caption,
        (*curves, guide(along, along)),
        Axis(
            "ID flagged by mistake (false-positive rate)",
            percent=True,
            range=(-0.01, 1.01),
            # half an image stands for none, which has no place on a logarithmic axis
            log_range=(0.5 / n_id, 1.0),
        ),
        Axis("OOD caught (true-positive rate)", percent=True, range=(-0.01, 1.01)),
        shape="square",
    )
