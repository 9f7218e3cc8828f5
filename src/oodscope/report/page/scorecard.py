"""Scorecard: detectors by protocols, each cell a number with its interval and rank; nothing is averaged across."""

from collections.abc import Sequence
from dataclasses import dataclass

from oodscope.document.table import spans
from oodscope.document.trial import Entry, Trial
from oodscope.document.wording import TRACKS
from oodscope.metrics.metric import Tuning


@dataclass(frozen=True)
class ScorecardRow:
    """A detector, how it was tuned, and its entry in each trial; None where it took no part."""

    detector: str
    tuning: Tuning
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Scorecard:
    """One column for each trial; rows in the order of the first, then of those in which a detector first appears."""

    trials: tuple[Trial, ...]
    rows: tuple[ScorecardRow, ...]

    @property
    def doubtful(self) -> bool:
        """Whether some number may be too good."""
        return any(entry.cell.doubts for trial in self.trials for entry in trial.entries)

    def tracks(self) -> list[tuple[str, list[ScorecardRow]]]:
        """The rows of each tuning track that occurs, with its name in words."""
        return [
            (words, own)
            for tuning, words in TRACKS.items()
            if (own := [row for row in self.rows if row.tuning == tuning])
        ]

    def protocols(self) -> list[tuple[str, int]]:
        """Each protocol and how many columns it has."""
        return spans(trial.protocol for trial in self.trials)


def scorecard(trials: Sequence[Trial]) -> Scorecard:
    """Put trials side by side."""
    keys = dict.fromkeys((entry.detector, entry.tuning) for trial in trials for entry in trial.entries)
    rows = (ScorecardRow(*key, tuple(trial.entry(*key) for trial in trials)) for key in keys)
    return Scorecard(tuple(trials), tuple(rows))
