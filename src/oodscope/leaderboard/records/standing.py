"""Standing: what became of an entry once every number was computed again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from oodscope.leaderboard.records.entry import Entry, Track
from oodscope.metrics.metric import Tuning
from oodscope.results.measurement import Measurements

Tier = Literal["reported", "recomputed", "re-executed", "retrained"]
"""How far an entry was checked. ``reported``: printed by somebody. ``recomputed``: its numbers follow from its scores.
``re-executed``: its scores follow from published activations. ``retrained``: three seeds or more of that."""

RANKED: tuple[Tier, ...] = ("re-executed", "retrained")

TuningTrack = Tuning | Literal["by hand"]
"""How parameters were chosen. ``default`` are those of the registry and nothing else; what an entry calls its defaults,
but the registry does not, stands in the track ``by hand``."""

Covered = Literal["scores", "predictions", "labels", "id_val", "id_train", "parameters"]
"""What a re-execution computed again, or compared with published lists: see ``rerunning``."""


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
    superseded_by, reason : the entry that took its place, and why.
    found_track : ``transductive`` where a re-execution showed that the scores depend on other test images.
    found_tuning : ``by hand`` where the parameters are not the registry's defaults, though the entry says so.
    covered : what exactly a re-execution computed again; empty below the tier ``re-executed``.
    curated : a row of a published table that comes with the package.
    received, submitter : stamped by the server that received the entry; empty where its keeper put it there.
    """

    entry: Entry
    tier: Tier
    measurements: Measurements
    differences: tuple[Difference, ...] = ()
    flags: tuple[str, ...] = ()
    superseded_by: str = ""
    reason: str = ""
    found_track: Track | None = None
    found_tuning: TuningTrack | None = None
    covered: tuple[Covered, ...] = ()
    curated: bool = False
    received: str = ""
    submitter: str = ""

    @property
    def track(self) -> Track:
        """Where it is ranked."""
        return self.found_track or self.entry.track

    @property
    def tuning(self) -> TuningTrack:
        """The tuning track in which it is ranked."""
        return self.found_tuning or self.entry.tuning

    @property
    def apart(self) -> bool:
        """Printed numbers that somebody submitted without scores: shown on a page of their own, ranked nowhere."""
        return self.tier == "reported" and not self.curated

    @property
    def dated(self) -> str:
        """When it was received; what an entry says of itself counts only where no server received it."""
        return self.received or self.entry.submitted

    @property
    def family(self) -> tuple[str, ...]:
        """What the seeds of one method share: nothing of another submitter, method or setting is averaged with it."""
        entry = self.entry
        return (
            *(self.submitter, entry.method, entry.group, str(entry.benchmark), self.track, self.tuning),
            *(entry.detector.name, str(entry.detector.version), entry.model.architecture),
            entry.model.words,
        )

    @property
    def ranked(self) -> bool:
        """Whether it may have a rank: checked far enough, and not superseded."""
        return self.tier in RANKED and not self.superseded_by

    @property
    def disputed(self) -> Sequence[Difference]:
        """Printed numbers that the scores contradict."""
        return [each for each in self.differences if each.above_noise]
