"""The images that a detector gets most wrong: foreign ones that look familiar, known ones that look foreign."""

import numpy as np
from numpy.typing import NDArray

from oodscope.results.scoretable import ScoreTable

COUNT = 8
"""Images of a set that are shown for a detector."""

FOREIGN, KNOWN = ("near", "far"), ("id_test", "csid")


def shown_sets(scores: ScoreTable) -> list[tuple[str, str]]:
    """Role and name of every set with a right and a wrong side: near and far ones first, then ``id_test`` and csid."""
    return [(role, name) for role in (*FOREIGN, *KNOWN) for name in scores.sets(role)]


def hardest(scores: ScoreTable, detector: str, role: str, name: str, count: int = COUNT) -> NDArray[np.int64]:
    """Rows of the table, the worst first: of a foreign set the lowest scores, of a known one the highest.

    Of equal scores the earlier row counts as worse, so that the answer is the same every time.
    """
    frame = scores.frame
    rows = np.flatnonzero(((frame["set"] == name) & (frame["role"] == role)).to_numpy())
    values = scores.scores(detector)[rows]
    order = np.argsort(values if role in FOREIGN else -values, kind="stable")
    return np.asarray(rows[order[:count]], dtype=np.int64)
