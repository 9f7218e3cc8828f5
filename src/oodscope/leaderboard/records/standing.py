"""Standing: what became of an entry once every number was computed again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from oodscope.leaderboard.records.entry import Entry, Track
from oodscope.results.measurement import Measurements

Tier = Literal["reported", "recomputed", "re-executed", "retrained"]
"""How far an entry was checked. ``reported``: printed by somebody. ``recomputed``: its numbers follow from its scores.
``re-executed``: its scores follow from published activations. ``retrained``: three seeds or more of that."""

RANKED: tuple[Tier, ...] = ("re-executed", "retrained")


@dataclass(frozen=True)
class Difference:
    """A printed number beside the measured one.

    Parameters
    ----------
    low, high : the interval of the measured value; ``None`` where it has none.
    above_noise : whether the printed number, rounded as it is, lies outside it.
    source : where it was printed.
    """

    protocol: str
    metric: str
    group: str
    set: str
    reported: float
    measured: float
    low: float | None
    high: float | None
    above_noise: bool
    source: str = ""


@dataclass(frozen=True)
class Standing:
    """An entry, how far it was checked, what its scores give, and what speaks against it.

    Parameters
    ----------
    measurements : recomputed; of an entry of tier ``reported``, the printed numbers.
    flags : reasons for care, one sentence each, beginning with a word: ``unreliable: ...``, ``exposure: ...``.
    track : where it is ranked: the entry's own track, or ``transductive`` where a run again found that out.
    superseded_by, reason : the entry that took its place, and why.
    """

    entry: Entry
    tier: Tier
    measurements: Measurements
    differences: tuple[Difference, ...] = ()
    flags: tuple[str, ...] = ()
    superseded_by: str = ""
    reason: str = ""
    found_track: Track | None = None

    @property
    def track(self) -> Track:
        return self.found_track or self.entry.track

    @property
    def ranked(self) -> bool:
        """Whether it may have a rank: checked far enough, and not superseded."""
        return self.tier in RANKED and not self.superseded_by

    @property
    def disputed(self) -> Sequence[Difference]:
        """Printed numbers that the scores contradict."""
        return [each for each in self.differences if each.above_noise]
