"""Weakness: one measured fact against a detector, and the subject that it is held against."""

from collections.abc import Iterable
from dataclasses import dataclass

from oodscope.document.wording import percent
from oodscope.metrics.metric import Tuning


@dataclass(frozen=True)
class Subject:
    """A detector as one trial ranks it: what runs are asked about when a leader's weaknesses are collected.

    Parameters
    ----------
    model : fingerprint of the network; empty where it is not known, which fits every network.
    protocol : under which it leads; weaknesses under the same protocol are preferred.
    """

    detector: str
    tuning: Tuning
    model: str = ""
    protocol: str = ""

    def fits(self, fingerprint: str) -> bool:
        """Whether a run of the network with this fingerprint is about the same network, as far as is known."""
        return not self.model or not fingerprint or self.model == fingerprint


@dataclass(frozen=True)
class Weakness:
    """One fact against a detector.

    Parameters
    ----------
    kind : in two or three words; of several of one kind a page shows the most severe.
    value : a share of 1, shown in percent between the words ``before`` and ``after``.
    anchor : the section of its run's chapter with the details.
    severity : compares weaknesses of one kind; larger is worse.
    protocol : under which it was measured.
    """

    kind: str
    before: str
    value: float
    after: str
    anchor: str
    severity: float
    protocol: str = ""

    @property
    def number(self) -> str:
        """The value in percent."""
        return percent(self.value)


def most_severe(weaknesses: Iterable[Weakness], protocol: str) -> list[Weakness]:
    """The worst of each kind, kinds in order of appearance; those under ``protocol`` stand before all others."""
    by_kind: dict[str, list[Weakness]] = {}
    for each in weaknesses:
        by_kind.setdefault(each.kind, []).append(each)
    worst = []
    for same in by_kind.values():
        own = [each for each in same if each.protocol == protocol] or same
        worst.append(max(own, key=lambda each: each.severity))
    return worst
