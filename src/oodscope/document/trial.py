"""Trial: one protocol in one run, reduced to the number by which it ranks detectors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from oodscope.document.chapter import anchor_of
from oodscope.document.number import Number
from oodscope.document.wording import TRACKS, places
from oodscope.metrics.metric import Tuning

PAIRED = "paired tests of all pairs at once"
APART = "intervals that do not overlap"
NEMENYI = "Nemenyi's test over the cells"
BY_VALUE = "values alone: no intervals were measured"


@dataclass(frozen=True)
class Entry:
    """A detector, how it was tuned, and its number with intervals, doubts and the ranks that noise allows."""

    detector: str
    tuning: Tuning
    cell: Number

    @property
    def rank(self) -> str:
        """``1–3``, or ``2`` if there is no doubt."""
        return places(self.cell.rank)


@dataclass(frozen=True)
class Trial:
    """What one protocol in one run says of each detector, in one number; numbers of two trials are never averaged.

    Parameters
    ----------
    protocol : its name, such as ``standard``.
    where : benchmark and model, for people.
    what : the number in words, such as ``near-OOD AUROC``.
    arrow : ``↑`` where more is better, ``↓`` where less is.
    entries : best first within each tuning track.
    ranked_by : what the ranks of the entries rest on.
    anchor : the section of its run's chapter with the details.
    model : fingerprint of the network, where there is one and it is known.
    """

    protocol: str
    where: str
    what: str
    arrow: str
    entries: tuple[Entry, ...]
    ranked_by: str
    anchor: str
    model: str = ""

    @property
    def higher(self) -> bool:
        """Whether more is better."""
        return self.arrow == "↑"

    def track(self, tuning: Tuning) -> list[Entry]:
        """The detectors tuned in one way, best first."""
        return [entry for entry in self.entries if entry.tuning == tuning]

    def entry(self, detector: str, tuning: Tuning) -> Entry | None:
        """The entry of one detector, if it took part."""
        return next((each for each in self.track(tuning) if each.detector == detector), None)

    def tied(self, tuning: Tuning) -> list[Entry]:
        """Those of a track, beside its leader, that may be best: by comparisons with the best, else by their ranks."""
        return [entry for entry in self.track(tuning)[1:] if _may_be_best(entry.cell)]


def _may_be_best(cell: Number) -> bool:
    if cell.may_be_best is not None:
        return cell.may_be_best
    return cell.rank is not None and cell.rank[0] == 1


def make_trial(
    protocol: str,
    where: str,
    what: str,
    entries: Sequence[Entry],
    *,
    higher: bool,
    measured: str = PAIRED,
    model: str = "",
) -> Trial:
    """A trial from entries in any order, with what their ranks rest on.

    Parameters
    ----------
    higher : whether more is better.
    measured : the test behind the ranks of the entries, where all of them bring one.
    """
    sure = all(entry.cell.interval for entry in entries)
    ranked = all(entry.cell.rank is not None for entry in entries)
    ranked_by = measured if ranked else APART if sure else BY_VALUE
    ordered = in_order(entries, higher)
    return Trial(protocol, where, what, "↑" if higher else "↓", ordered, ranked_by, anchor_of(protocol), model)


def leaders(trials: Iterable[Trial]) -> str:
    """Who leads each tuning track of each trial, as one sentence; empty without trials."""
    parts = [
        f"{track[0].detector} leads {trial.protocol.replace('_', ' ')} ({trial.what} {track[0].cell.number})"
        for trial in trials
        for tuning in TRACKS
        if (track := trial.track(tuning))
    ]
    return f"{'; '.join(parts)}." if parts else ""


def in_order(entries: Sequence[Entry], higher: bool) -> tuple[Entry, ...]:
    """Entries best first within each track, ranks filled in and the best of each track marked.

    Where no ranks were measured they come from the intervals: a detector stands above another if their intervals do
    not overlap. That allows more ranks than paired tests would, and never fewer.
    """
    ordered = sorted(entries, key=lambda each: (-each.cell.value if higher else each.cell.value, each.detector))
    found: list[Entry] = []
    for tuning in dict.fromkeys(entry.tuning for entry in entries):
        track = [entry for entry in ordered if entry.tuning == tuning]
        for entry in track:
            cell = entry.cell
            rank = cell.rank or _rank(cell, [each.cell for each in track], higher)
            leads = len(track) > 1 and cell.value == track[0].cell.value
            close = not leads and _may_be_best(replace(cell, rank=rank))
            found.append(replace(entry, cell=replace(cell, rank=rank, best=leads, close=close)))
    return tuple(found)


def _rank(cell: Number, track: Sequence[Number], higher: bool) -> tuple[int, int]:
    sign = 1.0 if higher else -1.0

    def above(one: Number, other: Number) -> bool:
        return sign * one.value > sign * other.value and not one.overlaps(other)

    better = sum(above(other, cell) for other in track)
    worse = sum(above(cell, other) for other in track)
    return 1 + better, len(track) - worse
