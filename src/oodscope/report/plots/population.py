"""Population: the images on which keeping and rejecting is tried, with what the classifier gets right among them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import UnknownNameError
from oodscope.results.scoretable import JUDGED, ScoreTable


@dataclass(frozen=True)
class Population:
    """Rows of a score table.

    Parameters
    ----------
    words : what a reader calls it.
    rows : places in the table.
    correct : of each row, whether the classifier is right; false throughout for foreign images.
    """

    words: str
    rows: NDArray[np.int64]
    correct: NDArray[np.bool_]


def population(scores: ScoreTable, set: str) -> Population:
    """A set as selective prediction looks at it.

    A foreign set is joined with ``id_test``: alone it would hold failures only, and there would be nothing to order.
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
