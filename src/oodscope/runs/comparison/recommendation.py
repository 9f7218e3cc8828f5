"""Recommendation: which detector to take, what it is worth, and which others may be as good."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from oodscope.base.errors import DataError, UnknownNameError, UsageError
from oodscope.document.wording import TRACKS, label, span
from oodscope.metrics.catalog import AUROC, METRICS
from oodscope.metrics.comparison.influence import join_sets
from oodscope.metrics.comparison.selection import select
from oodscope.metrics.metric import Tuning
from oodscope.protocols.registry import PROTOCOLS, headline_metrics, protocol_of, stored_protocol
from oodscope.protocols.separation import separate
from oodscope.protocols.statements import POPULATION_WORDS, Statement, Statements, units_of
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result


@dataclass(frozen=True)
class Recommendation:
    """The leader of a table, its cross-fitted value, and who may be best.

    Parameters
    ----------
    leader, apparent : the detector with the best value, and that value, which flatters it.
    value, low, high, level : its value on units that did not choose it.
    candidates : every detector that may be best, best value first.
    cheapest : the candidate that costs least per image, passes through the network counted first; the leader where no
        cost is known.
    of : how many detectors took part.
    on : what was averaged, in words.
    statement : the population that all of it is about.
    track : how the detectors were tuned, in words, where a run has several ways; empty otherwise.
    """

    leader: str
    apparent: float
    value: float
    low: float
    high: float
    level: float
    candidates: tuple[str, ...]
    cheapest: str
    of: int
    on: str
    metric: str
    statement: Statement
    track: str = ""

    def __str__(self) -> str:
        return claim(self)


def recommendation(
    scores: ScoreTable,
    *,
    weights: str | Mapping[str, float] = "near",
    protocol: str = "standard",
    metric: str = "auroc",
    level: float = 0.95,
    tuning: Tuning | None = None,
) -> Recommendation:
    """The detector to take for near-OOD, for far-OOD, or for a mixture of the user's own.

    Parameters
    ----------
    weights : a group, or weights of groups or sets: ``{"near": 0.8, "far": 0.2}``. A group's weight is shared equally
        by its sets.
    tuning : only detectors that were tuned so.
    """
    ranking = stored_protocol(scores, protocol)
    if not ranking.negatives:
        raise DataError(f"protocol {protocol!r} does not rank images; a recommendation needs one that does")
    separations = separate(scores, ranking.negatives, ranking.groups)
    if tuning is not None:
        described = scores.context.detectors
        separations = {name: each for name, each in separations.items() if described[name].tuning == tuning}
    order = list(separations)
    groups = separations[order[0]].groups
    shares = _shares({weights: 1.0} if isinstance(weights, str) else weights, groups)
    names, values = list(shares), list(shares.values())
    statements = Statements(separations, METRICS[metric])
    statement: Statement = "images" if statements.refusal(names) else "classes"
    if statement == "classes":
        estimates = statements.classes(names, values)
    else:
        units = units_of(separations, METRICS[metric], {}, 0)
        estimates = join_sets([units[name] for name in names], weights=values)
    higher = METRICS[metric].higher_is_better
    found = select(estimates, higher=higher, level=level)
    ranked = np.argsort(-estimates.values if higher else estimates.values, kind="stable")
    candidates = tuple(order[number] for number in ranked if found.candidates[number])
    costs = {name: scores.context.detectors[name].cost for name in candidates}
    known = {name: cost for name, cost in costs.items() if cost is not None}
    leader = order[found.leader]
    ends = np.array([found.value, found.low, found.high])
    value, low, high = (np.clip(ends, 0.0, 1.0) if METRICS[metric].unit == "percent" else ends).tolist()
    return Recommendation(
        leader=leader,
        apparent=found.apparent,
        value=value,
        low=low,
        high=high,
        level=level,
        candidates=candidates,
        cheapest=min(known, key=lambda name: (known[name], candidates.index(name))) if known else leader,
        of=len(order),
        on=f"{weights} OOD" if isinstance(weights, str) else _mixture(weights),
        metric=metric,
        statement=statement,
        track="" if tuning is None else TRACKS[tuning],
    )


def recommendations(
    scores: ScoreTable, weights: Mapping[str, float] | None = None, *, protocol: str = "standard", metric: str = "auroc"
) -> list[Recommendation]:
    """One for each group that was measured (near, far), and one for the user's own weights where they are given.

    Detectors that were tuned in different ways are never compared. Nothing where there is nothing to choose from: fewer
    than two detectors of a track, or single images.
    """
    ranking = stored_protocol(scores, protocol)
    groups = [group for group, roles in ranking.groups.items() if any(scores.sets(role) for role in roles)]
    wanted: list[str | Mapping[str, float]] = [*groups, *([weights] if weights else [])]
    if min(scores.frame.groupby("set", observed=True).size(), default=0) < 2:
        return []
    sizes = Counter(each.tuning for each in scores.context.detectors.values())
    tracks: list[Tuning | None] = [track for track in TRACKS if sizes[track] > 1] if len(sizes) > 1 else [None]
    if len(scores.detectors) < 2:
        return []
    return [
        recommendation(scores, weights=each, protocol=protocol, metric=metric, tuning=track)
        for track in tracks
        for each in wanted
    ]


def recommended(result: Result, weights: Mapping[str, float] | None = None) -> list[str]:
    """What pages and terminal say of a run, for near, for far and for weights of the user: :func:`claim` of each.

    Under the first protocol of the run that ranks images, by its headline metric. Nothing where that protocol is not
    installed here, or where its metric has no weighted form from which noise could be found.
    """
    ranking = [name for name in result.record.protocols if name in PROTOCOLS.names() and protocol_of(name).negatives]
    if not ranking:
        return []
    metric = headline_metrics(ranking[0], result.measurements)[0]
    if metric != AUROC.name and METRICS[metric].value is None:
        return []
    return [str(each) for each in recommendations(result.scores, weights, protocol=ranking[0], metric=metric)]


def read_weights(texts: Sequence[str]) -> dict[str, float]:
    """Weights of groups or sets from ``near=0.8`` and ``far=0.2``."""
    found: dict[str, float] = {}
    for text in texts:
        name, sign, number = text.partition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = nan
        if not sign or not name or not 0.0 <= weight < inf:
            raise UsageError(f"--weights {text}: write GROUP=NUMBER or SET=NUMBER, such as near=0.8,far=0.2")
        if name in found:
            raise UsageError(f"--weights {text}: {name} is given twice")
        found[name] = weight
    if found and not any(found.values()):
        raise UsageError("--weights: one of them must be above 0")
    return found


def claim(found: Recommendation) -> str:
    """The sentence that pages and terminal share: what was selected from how many, its value, and its population."""
    population = POPULATION_WORDS[found.statement]
    interval = f"{100 * found.level:g} % interval {span(found.low, found.high)}"
    worth = f"{100 * found.value:.1f} {label(found.metric)} ({interval})"
    taking_part = f"{found.of} detectors" + (f" ({found.track})" if found.track else "")
    others = [name for name in found.candidates if name != found.leader]
    if not others:
        return (
            f"On {found.on}, {found.leader} is the best of {taking_part} for {population}: {worth}, measured on "
            "data that did not choose it."
        )
    cheapest = f" Of these, {found.cheapest} costs least." if found.cheapest else ""
    return (
        f"On {found.on}, {len(found.candidates)} of {taking_part} may be best for {population}: "
        f"{', '.join(found.candidates)}.{cheapest} The one that looks best, {found.leader}, is worth {worth}, measured "
        "on data that did not choose it."
    )


def _shares(weights: Mapping[str, float], groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The weight of every set."""
    sets = {name: group for group, names in groups.items() for name in names}
    shares: dict[str, float] = {}
    for name, weight in weights.items():
        if name not in groups and name not in sets:
            raise UnknownNameError("group or set", name, [*groups, *sets], f"Measured: {', '.join([*groups, *sets])}")
        members = [each for each, group in sets.items() if name in (each, group)]
        for each in members:
            shares[each] = shares.get(each, 0.0) + weight / len(members)
    return shares


def _mixture(weights: Mapping[str, float]) -> str:
    total = sum(weights.values())
    return "a mixture of " + ", ".join(f"{100 * weight / total:.0f} % {name}" for name, weight in weights.items())
