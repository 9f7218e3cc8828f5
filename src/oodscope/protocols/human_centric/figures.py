"""What keeping and rejecting by score costs: DER at every threshold, and risk against coverage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import UnknownNameError
from oodscope.document.figure import Axis, Figure, Line, Position, drawn_positions, figure_name, guide, numbers
from oodscope.metrics.rejection.rejection import Rejection, der_over_prevalence
from oodscope.metrics.rejection.selective import Selection
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.protocols.human_centric.sets import labelled_sets, rows_of
from oodscope.results.scoretable import JUDGED, ScoreTable


def der_curves(
    scores: ScoreTable,
    set: str,
    detectors: Sequence[str] | None = None,
    positions: Mapping[str, Position] | None = None,
) -> Figure:
    """DER against the share that a threshold keeps, on one set (an OOD one joined with ``id_test``).

    Thresholds of different detectors have no common scale; what they keep has. The threshold itself is what a pointer
    shows.

    Parameters
    ----------
    detectors : all, in the order of the table, by default.
    positions : of detectors on the page; their places among ``detectors`` by default.
    """
    among = population(scores, set)
    places = drawn_positions(scores.detectors, detectors, positions)
    accuracy = float(among.correct.mean())
    return Figure(
        figure_name("der", set),
        f"{among.words}: wrong decisions at every threshold (DER)",
        "A decision is wrong if a correct image is rejected, or a wrong or OOD one kept: lower is better. At the "
        "left end all is rejected, at the right end all is kept, so that the classifier stands alone. The dotted line "
        "is the best that any detector could do; the legend gives each curve's lowest point.",
        (
            *(_der(scores, among, name, place) for name, place in places.items()),
            guide([0.0, accuracy, 1.0], [accuracy, 0.0, 1.0 - accuracy]),
        ),
        Axis("share of images kept", percent=True, range=(0.0, 1.0)),
        Axis("DER", percent=True, from_zero=True),
    )


SHARES = np.linspace(0.0, 1.0, 51)
"""Of OOD images in a stream, at which DER is drawn."""


def der_over_share(
    scores: ScoreTable,
    set: str,
    detectors: Sequence[str] | None = None,
    positions: Mapping[str, Position] | None = None,
) -> Figure:
    """DER95 against the share of OOD images in use, the threshold from correct validation images.

    Test sets hold as many OOD images as somebody collected; what a detector is worth depends on how many there will be.

    Parameters
    ----------
    detectors, positions : as in :func:`der_curves`.
    """
    by_name = {each.name: each for each in labelled_sets(scores)}
    known = next(each for each in by_name.values() if each.role == "id_test")
    val = rows_of(scores, "id_val")
    val = val[scores.correct()[val]]
    places = drawn_positions(scores.detectors, detectors, positions)
    lines = []
    for name, place in places.items():
        column = scores.scores(name)
        gamma = ThresholdSample(column[val], name).threshold(0.95).value
        sides = [Rejection(column[each.rows], each.correct).at(gamma) for each in (known, by_name[set])]
        hover = "{name}\n{x:.0%} of the images are OOD\n{y:.2%} of the decisions are wrong"
        lines.append(Line(name, numbers(SHARES), numbers(der_over_prevalence(*sides, SHARES)), place, hover))
    accuracy = float(known.correct.mean())
    return Figure(
        figure_name("der-share", set),
        f"{set} among id_test: wrong decisions by the share of OOD images (DER95)",
        "Each detector keeps 95 % of the correct validation images. Which one errs least depends on how many OOD "
        "images there will be. The dotted line is no detector: every image is kept.",
        (*lines, guide([0.0, 1.0], [1.0 - accuracy, 1.0])),
        Axis("share of OOD images", percent=True, range=(0.0, 1.0)),
        Axis("DER", percent=True, from_zero=True),
    )


def has_share(scores: ScoreTable) -> bool:
    """Whether there are correct validation images to take a threshold from."""
    return bool(scores.correct()[rows_of(scores, "id_val")].any())


def risk_coverage(
    scores: ScoreTable,
    set: str,
    detectors: Sequence[str] | None = None,
    positions: Mapping[str, Position] | None = None,
) -> Figure:
    """Selective risk against coverage on one set (an OOD one joined with ``id_test``), a curve for each detector.

    Parameters
    ----------
    detectors, positions : as in :func:`der_curves`.
    """
    among = population(scores, set)
    places = drawn_positions(scores.detectors, detectors, positions)
    failures = 1.0 - float(among.correct.mean())
    return Figure(
        figure_name("risk", set),
        f"{among.words}: risk against coverage",
        "Images are accepted from the lowest score up. Risk is the share of accepted images that the classifier gets "
        "wrong or that are OOD: lower is better. The dotted line is a random order; the legend gives the area "
        "under each curve (AURC, in percent).",
        (
            *(_risk(scores, among, name, place) for name, place in places.items()),
            guide([0.0, 1.0], [failures, failures]),
        ),
        Axis("coverage: share of images accepted", percent=True, range=(0.0, 1.0)),
        Axis("risk", percent=True, from_zero=True),
    )


@dataclass(frozen=True)
class Population:
    """Rows of a score table on which keeping and rejecting is tried.

    Parameters
    ----------
    words : what a reader calls it.
    rows : places in the table.
    correct : of each row, whether the classifier is right; false throughout for OOD images.
    """

    words: str
    rows: NDArray[np.int64]
    correct: NDArray[np.bool_]


def population(scores: ScoreTable, set: str) -> Population:
    """A set as selective prediction looks at it.

    An OOD set is joined with ``id_test``: alone it would hold failures only, and there would be nothing to order.
    Any other set stands for itself.
    """
    frame = scores.frame
    own = ((frame["set"] == set) & frame["role"].isin(JUDGED)).to_numpy()
    if not own.any():
        raise UnknownNameError("set", set, [name for role in JUDGED for name in scores.sets(role)])
    words, chosen = set, own
    if frame["role"].to_numpy()[own][0] in ("near", "far"):
        words, chosen = f"id_test and {set}", own | (frame["role"] == "id_test").to_numpy()
    rows = np.flatnonzero(chosen)
    return Population(words, rows, scores.correct()[rows])


def _der(scores: ScoreTable, among: Population, detector: str, position: Position) -> Line:
    thresholds, decisions = Rejection(scores.scores(detector)[among.rows], among.correct).curve()
    kept = (decisions.kept_correct + decisions.kept_wrong) / decisions.n
    # above the last score everything is kept; no plot has infinity, and any larger number would do
    finite = np.where(np.isfinite(thresholds), thresholds, thresholds[-2])
    return Line(
        f"{detector} ({100 * decisions.der.min():.2f})",
        numbers(kept),
        numbers(decisions.der),
        position,
        "{name}\nthreshold {beside:.4g}: keeps {x:.1%} of the images\n{y:.2%} of the decisions are wrong",
        numbers(finite),
    )


def _risk(scores: ScoreTable, among: Population, detector: str, position: Position) -> Line:
    selection = Selection(scores.scores(detector)[among.rows], among.correct)
    coverage, risk = selection.curve()
    aurc = 100 * float(selection.acceptance.aurc())
    hover = "{name}\naccepts {x:.1%} of the images\n{y:.2%} of those are failures"
    return Line(f"{detector} ({aurc:.2f})", numbers(coverage), numbers(risk), position, hover)
