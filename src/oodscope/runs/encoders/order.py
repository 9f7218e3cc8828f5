"""Order: the ranks that encoders may have under one detector, on the same images."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from oodscope.base.errors import DataError
from oodscope.detectors.combination import reads_features_alone
from oodscope.detectors.registry import requested_detector
from oodscope.metrics.comparison.simultaneous import rank_intervals
from oodscope.protocols.statements import POPULATION_WORDS, Statement
from oodscope.results.scoretable import JUDGED, ScoreTable
from oodscope.runs.comparison.compare import aligned_with, source_of
from oodscope.runs.comparison.sources import Scored
from oodscope.runs.evaluation.run import Result


@dataclass(frozen=True)
class Order:
    """The ranks of encoders by the mean AUROC of one group of sets, under one detector.

    Parameters
    ----------
    words : digest of the class names and sentences that all of them classify by; empty where the detector reads none.
    group : ``near`` or ``far``.
    statement : what is random: other images of these classes, or other OOD classes where these were sampled.
    places : by the name of the encoder its best and worst rank; all of them hold at once with probability 0.95.
    """

    detector: str
    words: str
    group: str
    statement: Statement
    places: dict[str, tuple[int, int]]

    def __str__(self) -> str:
        first = [name for name, (best, _) in self.places.items() if best == 1]
        count = len(self.places)
        population = POPULATION_WORDS[self.statement].replace("this network", "these networks")
        if len(first) == 1:
            said = f"{first[0]} is first of {count}"
        elif len(first) == count:
            said = f"any of the {count} may be first"
        else:
            said = f"{' or '.join(first)} may be first of {count}"  # names may hold commas
        return f"{self.detector}, {self.group} OOD: {said}, for {population}."


def find_worded(runs: Mapping[str, Result]) -> list[str]:
    """The detectors that read anything but features, so that their scores depend on how the classes are called."""
    known = {name: about.name for each in runs.values() for name, about in each.scores.context.detectors.items()}
    return [name for name, registered in known.items() if not reads_features_alone(requested_detector(registered))]


def find_orders(runs: Mapping[str, Result], worded: Collection[str]) -> tuple[list[Order], list[str]]:
    """The order of encoders under every detector that two of them have, and notes on what could not be ranked.

    Encoders that classify by different words are not ranked against each other under detectors that read them.

    Parameters
    ----------
    runs : by the name of the encoder its evaluation, all on one benchmark.
    worded : detectors that read words.
    """
    judged = {name: _judged(result) for name, result in runs.items()}
    orders: list[Order] = []
    notes: list[str] = []
    for detector in dict.fromkeys(each for result in judged.values() for each in result.scores.detectors):
        having = {name: each for name, each in judged.items() if detector in each.scores.detectors}
        words = {name: each.record.words if detector in worded else "" for name, each in having.items()}
        digests = list(dict.fromkeys(filter(None, words.values())))
        groups = {digests[0] if digests else "": having}
        if len(digests) > 1:
            keys = dict.fromkeys(words.values())
            groups = {key: {name: each for name, each in having.items() if words[name] == key} for key in keys}
            notes.append(
                f"{detector}: class names or sentences differ ({', '.join(digests)}); encoders are ranked among those "
                "of the same words alone"
            )
        for digest, members in groups.items():
            try:
                orders += _orders(members, detector, digest) if len(members) > 1 else []
            except DataError as error:
                notes.append(f"{detector}: no order, because {error}")
    return orders, notes


def _orders(runs: Mapping[str, Result], detector: str, words: str) -> list[Order]:
    first = next(iter(runs.values()))
    scored = [Scored(name, aligned_with(first, result), detector) for name, result in runs.items()]
    source = source_of(scored, "standard", "auroc", first.scores.context.seed or 0)
    orders = []
    for group, sets in source.groups.items():
        statement: Statement = "images" if source.refusal(sets) else "classes"
        found = source.images(sets) if statement == "images" else source.classes(sets)
        places = dict(zip(runs, rank_intervals(found), strict=True))
        orders.append(Order(detector, words, group, statement, places))
    return orders


def _judged(result: Result) -> Result:
    """The evaluation with the scores of test images alone: some encoders were scored on others too, for thresholds."""
    scores = result.scores
    frame = scores.frame[scores.frame["role"].isin(JUDGED).to_numpy()]
    return replace(result, scores=ScoreTable(frame.reset_index(drop=True), scores.context))
