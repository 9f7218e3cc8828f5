"""Advice: which detector to take from an evaluation, what it is worth, what it lets pass, and where it breaks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oodscope.document.number import Number
from oodscope.document.weakness import Subject, Weakness, most_severe
from oodscope.document.wording import TRACKS, label
from oodscope.metrics.metric import MEAN
from oodscope.protocols.registry import known_protocol, stored_protocol
from oodscope.results.scoretable import COLUMNS, ScoreTable
from oodscope.runs.comparison.recommendation import Recommendation, claim, recommendation
from oodscope.runs.evaluation.chance import separation_at_chance
from oodscope.runs.evaluation.run import Result, chance_warning

PASSES = "fpr95_id_positive"
"""What passes while 5 % of the ID images raise a false alarm."""


@dataclass(frozen=True)
class Advice:
    """The sentences of one evaluation for the reader who must choose.

    Parameters
    ----------
    detector : the one to take; empty where nothing can be recommended.
    lead : what to do, in a few words.
    value : of the detector, measured on data that did not choose it where it is the leader.
    on, metric : what the value is of.
    claim : who may be best, for which population, and how much that is worth.
    missed : what the detector lets pass at 5 % false alarms; None where that was not measured.
    breaks : the worst that is known of it.
    warnings : reasons not to rely on any of it.
    """

    detector: str
    lead: str
    claim: str
    value: Number | None = None
    on: str = ""
    metric: str = ""
    missed: Number | None = None
    breaks: tuple[Weakness, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def misses(self) -> str:
        """``At 5 % false alarms it misses 41.3 % (38.0–44.9) of near OOD.``; empty where that was not measured."""
        if self.missed is None:
            return ""
        ends = self.missed.class_interval or self.missed.interval
        return f"At 5 % false alarms it misses {100 * self.missed.value:.1f} %{f' ({ends})' * bool(ends)} of {self.on}."

    @property
    def weaknesses(self) -> str:
        """Where it breaks, as one sentence; empty where nothing is known."""
        parts = [
            f"{each.kind}: {each.before} {'at most ' * bool(each.doubts)}{each.number.number} {each.after}".strip()
            + f" ({'; '.join(each.doubts)})" * bool(each.doubts)
            for each in self.breaks
        ]
        return f"It breaks: {'; '.join(parts)}." if parts else ""

    def __str__(self) -> str:
        return " ".join(filter(None, (f"{self.lead}.", self.claim, self.misses, self.weaknesses, *self.warnings)))


def nothing_known(subject: Subject) -> Sequence[Weakness]:
    """No weakness, whatever the detector."""
    return ()


def advise(result: Result, against: Callable[[Subject], Sequence[Weakness]] = nothing_known) -> Advice | None:
    """Which detector to take; None where the evaluation has no OOD set that a protocol ranks detectors by.

    Of several detectors that may be best the cheapest is taken. Detectors that saw OOD images while they were tuned are
    never compared with those that did not: the first track that has any is the one advised on.

    Parameters
    ----------
    against : asked for what is known against the detector that is taken; the worst of each kind is kept.
    """
    found = _candidate(result)
    if found is None:
        return None
    protocol, group, scores, best = found
    number = _number(result, protocol, group, best.cheapest)
    if best.cheapest == best.leader:
        number = _cross_fitted(best, number.exposure if number else "")
    stops = tuple(filter(None, (chance_warning(result), separation_at_chance(number) if number else "")))
    if stops:
        return Advice("", "No detector can be recommended", " ".join(stops))
    warnings = []
    if number is not None and number.exposure:
        warnings.append(f"The network has met images of this number before: {number.exposure}.")
    track = scores.context.detectors[best.cheapest].tuning
    subject = Subject(best.cheapest, track, result.record.model_fingerprint)
    if track == "ood_val":
        warnings.append(f"Parameters were {TRACKS[track]}, so unknown kinds of OOD may be harder.")
    return Advice(
        best.cheapest,
        f"Take {best.cheapest}",
        _only(best) if best.of == 1 else claim(best),
        number,
        best.on,
        label(best.metric),
        _number(result, protocol, group, best.cheapest, PASSES),
        tuple(most_severe(against(subject))),
        tuple(warnings),
    )


def _candidate(result: Result) -> tuple[str, str, ScoreTable, Recommendation] | None:
    """Protocol, group, the scores compared, and what is recommended from them; None where nothing is ranked."""
    for protocol in sorted(result.record.protocols, key=lambda name: name != "standard"):
        if not known_protocol(protocol) or not (stored := stored_protocol(result.scores, protocol)).negatives:
            continue
        for group in ("near", "far"):
            if (
                group in stored.groups
                and result.scores.sets(group)
                and (scores := _one_track(result, protocol)) is not None
            ):
                return protocol, group, scores, recommendation(scores, weights=group, protocol=protocol)
    return None


def _one_track(result: Result, protocol: str) -> ScoreTable | None:
    """The scores of the detectors that one ranking holds: tuned alike, and none that a protocol refuses to rank."""
    described = result.scores.context.detectors
    refused = {row.detector for row in result.measurements.filter(protocol=protocol) if row.unranked}
    for track in TRACKS:
        names = [name for name in result.scores.detectors if described[name].tuning == track and name not in refused]
        if names:
            return _only_detectors(result.scores, names)
    return None


def _only_detectors(scores: ScoreTable, names: Sequence[str]) -> ScoreTable:
    if list(names) == scores.detectors:
        return scores
    kept = {name: scores.context.detectors[name] for name in names}
    return ScoreTable(scores.frame[[*COLUMNS, *names]], scores.context.model_copy(update={"detectors": kept}))


def _number(result: Result, protocol: str, group: str, detector: str, metric: str = "auroc") -> Number | None:
    """The mean over a group as measured, with both intervals."""
    rows = result.measurements.filter(protocol=protocol, metric=metric, detector=detector, group=group)
    chosen = [row for row in rows if row.set == MEAN] or list(rows)
    if len(chosen) != 1:
        return None
    (row,) = chosen
    classes = (row.class_low, row.class_high)
    return Number(row.value, row.low, row.high, False, False, *classes, exposure=row.exposure)


def _cross_fitted(best: Recommendation, exposure: str) -> Number:
    """The value of the leader on data that did not choose it, with the interval of the population it is about."""
    if best.statement == "classes":
        return Number(best.value, class_low=best.low, class_high=best.high, exposure=exposure)
    return Number(best.value, best.low, best.high, exposure=exposure)


def _only(best: Recommendation) -> str:
    return f"It is the only detector of this evaluation, so nothing is compared ({best.on}, {label(best.metric)})."
