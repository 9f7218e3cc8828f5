"""Test sets with the knowledge of what the classifier gets right in them, grouped by the kind of shift."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodscope.results.scoretable import ScoreTable

SHIFTS = {"label_shift": ("near", "far"), "input_shift": ("id_test", "csid")}
"""A foreign class shifts the label, so that no prediction is right; a corruption or another style shifts the input
only, and the classifier may still be right. ``id_test`` is the input shift of size zero."""


@dataclass(frozen=True)
class LabelledSet:
    """One test set.

    Parameters
    ----------
    group : ``label_shift`` or ``input_shift``.
    rows : where its images stand in the score table.
    correct : whether the classifier's prediction is right; false throughout under label shift.
    """

    name: str
    role: str
    group: str
    rows: NDArray[np.int64]
    correct: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def foreign(self) -> bool:
        """Whether its classes are unknown to the classifier."""
        return self.group == "label_shift"


def labelled_sets(scores: ScoreTable) -> list[LabelledSet]:
    """Every test set of the table, foreign ones first."""
    right = scores.correct()
    found = []
    for group, roles in SHIFTS.items():
        for role in roles:
            for name in scores.sets(role):
                rows = rows_of(scores, role, name)
                found.append(LabelledSet(name, role, group, rows, right[rows]))
    return found


def rows_of(scores: ScoreTable, role: str, name: str | None = None) -> NDArray[np.int64]:
    """Where the images of a role, or of one of its sets, stand in the table."""
    chosen = (scores.frame["role"] == role).to_numpy()
    if name is not None:
        chosen = chosen & (scores.frame["set"] == name).to_numpy()
    return np.flatnonzero(chosen)
