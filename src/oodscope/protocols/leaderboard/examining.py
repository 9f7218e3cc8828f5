"""Examine: what the two files of an entry say, whatever the board around them holds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oodscope.base.errors import DataError
from oodscope.metrics.ranking.placements import Placements
from oodscope.protocols.base import PROTOCOLS
from oodscope.protocols.leaderboard.judging import judge
from oodscope.protocols.leaderboard.suspicions import suspicions
from oodscope.protocols.ranking import separate
from oodscope.results.leaderboard.entry import Entry
from oodscope.results.leaderboard.folder import read_scores
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable

Placed = dict[tuple[str, str], Placements]
"""By protocol and group: what each image contributes to the mean AUROC."""


@dataclass(frozen=True)
class Examined:
    """Every number of an entry once more from its scores.

    Parameters
    ----------
    measurements : by the protocols that the entry names.
    placed : for paired tests between entries.
    flags : what the scores say against the entry; see :func:`suspicions`.
    """

    measurements: Measurements
    placed: Placed
    flags: tuple[str, ...]


Examiner = Callable[[Path, Entry], Examined]


def examine(folder: Path, entry: Entry) -> Examined:
    """Read the scores and judge them; what cannot be believed is a ``DataError``."""
    scores = read_scores(folder, entry)
    try:
        measurements = judge(scores, entry.protocols)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    return Examined(measurements, _placements(entry, scores), tuple(suspicions(entry, scores, measurements)))


def _placements(entry: Entry, scores: ScoreTable) -> Placed:
    """What each image contributes to the mean AUROCs of the protocols that rank."""
    found: Placed = {}
    for name in entry.protocols:
        negatives = PROTOCOLS[name].negatives if name in PROTOCOLS else ()
        if negatives:
            separation = separate(scores, negatives)[entry.detector.id]
            if separation.testable:
                found |= {(name, group): separation.placements(sets) for group, sets in separation.groups.items()}
    return found
