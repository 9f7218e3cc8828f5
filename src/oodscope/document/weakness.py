"""Weakness: one measured fact against a detector, and the subject that it is held against."""

from collections.abc import Iterable
from dataclasses import dataclass

from oodscope.document.number import Number
from oodscope.metrics.metric import Tuning


@dataclass(frozen=True)
class Subject:
    """A detector as one trial ranks it: what runs are asked about when a leader's weaknesses are collected.

    Parameters
    ----------
    model : fingerprint of the network; empty where it is not known, which fits every network.
    """

    detector: str
    tuning: Tuning
    model: str = ""

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
    doubts : why the value may still be too good, such as a search that stopped early.
    """

    kind: str
    before: str
    value: float
    after: str
    anchor: str
    severity: float
    doubts: tuple[str, ...] = ()

    @property
    def number(self) -> Number:
        """The value, with its doubts."""
        return Number(self.value, doubts=self.doubts)


def most_severe(weaknesses: Iterable[Weakness]) -> list[Weakness]:
    """The worst of each kind, whichever protocol measured it; kinds in order of appearance."""
    by_kind: dict[str, list[Weakness]] = {}
    for each in weaknesses:
        by_kind.setdefault(each.kind, []).append(each)
    return [max(same, key=lambda each: each.severity) for same in by_kind.values()]
