"""Verdict: who leads each protocol, by how much, how sure that is, and what speaks against the leader."""

from collections.abc import Sequence
from dataclasses import dataclass

from oodscope.document.trial import BY_VALUE, Entry, Trial
from oodscope.document.weakness import Subject, Weakness, most_severe
from oodscope.document.wording import TRACKS, shown
from oodscope.report.page.placing import placed_weaknesses
from oodscope.results.run import Run
from oodscope.runs.crossval.run import PROTOCOL as CROSSVAL
from oodscope.runs.evaluation.chance import separation_at_chance

_NAMED = 3


@dataclass(frozen=True)
class Verdict:
    """The leader of one tuning track under one trial; protocols and tracks are never averaged.

    Parameters
    ----------
    track : in words.
    size : detectors of the track.
    sureness : by how much the leader leads, and which others it is statistically indistinguishable from.
    """

    trial: Trial
    track: str
    leader: Entry
    size: int
    sureness: str
    weaknesses: list[Weakness]


def verdicts(runs: Sequence[Run], trials: Sequence[Trial]) -> list[Verdict]:
    """One for each tuning track of each trial, with the worst that any of the runs knows of the leader."""
    leaders = []
    for trial in trials:
        for tuning, words in TRACKS.items():
            if track := trial.track(tuning):
                leader = track[0]
                subject = Subject(leader.detector, tuning, trial.model)
                against = most_severe(placed_weaknesses(runs, subject))
                leaders.append(Verdict(trial, words, leader, len(track), sureness(trial, track), against))
    return leaders


def chance_warnings(trials: Sequence[Trial]) -> list[str]:
    """A sentence for each cross-validation whose best detector is not shown to be better than chance.

    The advice on an evaluation says so itself; an attack is meant to bring detectors down.
    """
    found = []
    for trial in trials:
        if trial.protocol == CROSSVAL and trial.entries:
            best = max((entry.cell for entry in trial.entries), key=lambda cell: cell.value)
            if words := separation_at_chance(best):
                found.append(f"{trial.protocol.replace('_', ' ')}, {trial.where}: {words}")
    return found


def sureness(trial: Trial, track: Sequence[Entry]) -> str:
    """By how much the first of a track leads, and over how many that may be noise, as a sentence."""
    leader, others = track[0], track[1:]
    if not others:
        return "It is the only detector of this track, so nothing is compared."
    gap = abs(leader.cell.value - others[0].cell.value)
    points = " points" if leader.cell.unit == "percent" else ""
    ahead = f"{shown(gap, leader.cell.unit)}{points} ahead of {others[0].detector}"
    if trial.ranked_by == BY_VALUE:
        return f"{ahead}; without intervals, how much of the lead is noise is not known."
    if leader.cell.doubts:  # the truth may be lower than what was found, by more than the lead
        return f"{ahead} by numbers in doubt (*): whether it leads cannot be said."
    tied = trial.tied(leader.tuning)
    population = f" for {leader.cell.population}" if leader.cell.population else ""
    if not tied:
        return f"{ahead}; none of {len(others)} other{'s' * (len(others) > 1)} may be best{population}."
    return f"{ahead}; {len(tied)} of {len(others)} others may be best too{population}: {_listed(tied)}."


def _listed(entries: Sequence[Entry]) -> str:
    names = [entry.detector for entry in entries]
    parts = [*names[:_NAMED], *([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else [])]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
