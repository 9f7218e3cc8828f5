"""Paired comparisons of detectors: all pairs of one run, the same detectors of two runs, or one recipe's networks."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.comparison.influence import Estimates
from oodscope.metrics.comparison.networks import paired_by_seed
from oodscope.metrics.comparison.paired import detectable_difference
from oodscope.metrics.comparison.simultaneous import compare_pairs
from oodscope.metrics.metric import MEAN
from oodscope.metrics.rejection.rejection import Decisions
from oodscope.metrics.rejection.selective import Acceptance
from oodscope.protocols.registry import PROTOCOLS, stored_protocol
from oodscope.protocols.statements import Statement
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.comparison import Comparison, Comparisons
from oodscope.runs.comparison.sources import RankingSource, RejectionSource, Scored, Source
from oodscope.runs.evaluation.run import Result


def compare(
    first: Result,
    second: Result | None = None,
    *,
    detectors: Sequence[str] | None = None,
    protocol: str | None = None,
    metric: str | None = None,
    level: float = 0.95,
    seeds: Sequence[Result] = (),
) -> Comparisons:
    """Which detectors differ by more than noise, and what difference could be seen at all.

    With one result, every pair of its detectors; with two (two models, two recipes), each detector of the first against
    the same one of the second, on the images that both scored. Each pair and column has a row for every statement that
    can be made: ``images`` (other images of these classes), ``classes`` (other OOD classes, where classes are sampled
    and at least 5 effective ones) and, given more networks of the same recipe, ``networks``. p-values are adjusted over
    the pairs of a column by step-down max-T, or by Holm where fewer than 10 classes or networks were drawn.

    Parameters
    ----------
    detectors : which; all (or all that both have) by default.
    protocol : whose negatives and groups count; the first one of the run that measures the metric, by default.
    metric : any metric that is measured there: of a ranking, of rejection (DER, AUGRC, ...), or with a weighted form;
        the first headline metric of the protocol by default.
    seeds : runs of the same detectors and images with other networks of the recipe, for post-hoc detectors.

    Examples
    --------
    >>> row = oods.compare(result)[0]
    >>> (row.first, row.second, row.set, row.statement)
    ('msp', 'knn', 'mean', 'images')
    """
    name, metric = protocol_and_metric(first, protocol, metric)
    if second is not None and seeds:
        raise DataError("give a second run or seeds, not both: two trainings are compared over seeds of each")
    if second is None:
        chosen = _chosen(detectors, first.scores.detectors)
        scored = [Scored(each, first.scores, each) for each in chosen]
        pairs = list(combinations(range(len(scored)), 2))
    else:
        scored, pairs = _side_by_side(first, second, shared_detectors([first, second], detectors))
    if not pairs:
        raise DataError("a comparison needs two detectors, or two runs")
    others = [_same_images(first, other, [each.detector for each in scored]) for other in seeds]
    source = source_of(scored, name, metric, first.scores.context.seed or 0)
    if not source.groups:
        raise DataError("there is no near or far set to compare on")
    networks = [source_of(other, name, metric, first.scores.context.seed or 0) for other in others]
    rows, notes = [], []
    for group, names in source.groups.items():
        for column, sets in ((MEAN, list(names)), *((each, [each]) for each in names)):
            if reason := source.refusal(sets):
                where = f"{group} mean" if column == MEAN else column
                notes.append(f"Of other OOD classes nothing is said on {where}: {reason}.")
            for statement, found in _statements(source, networks, sets):
                labels = [each.label for each in scored]
                made = comparison_rows(source, labels, pairs, found(), (statement, group, column, sets), level)
                rows += [Comparison(protocol=name, metric=metric, **fields) for fields in made]
    return Comparisons(rows, notes)


def protocol_and_metric(result: Result, protocol: str | None, metric: str | None) -> tuple[str, str]:
    """What is compared: by default the headline of the run's first protocol that ranks images."""
    if protocol is None:
        decides = metric is not None and METRICS[metric].sample in (Decisions, Acceptance)
        candidates = [*result.record.protocols, *PROTOCOLS.names()]
        protocol = next(name for name in candidates if bool(PROTOCOLS.get(name).negatives) != decides)
    return protocol, metric or stored_protocol(result.scores, protocol).headline[0]


def source_of(scored: Sequence[Scored], name: str, metric: str, seed: int = 0) -> Source:
    """The detectors of a comparison under a metric of a protocol."""
    protocol = stored_protocol(scored[0].table, name)
    kind = RankingSource if protocol.negatives else RejectionSource
    return kind(scored, protocol, METRICS[metric], seed)


def _statements(
    source: Source, networks: Sequence[Source], names: Sequence[str]
) -> Iterator[tuple[Statement, Callable[[], Estimates]]]:
    """Every statement that can be made of some sets, with what it rests on."""
    yield "images", lambda: source.images(names)
    if not source.refusal(names):
        yield "classes", lambda: source.classes(names)
    if networks:
        every = [[each.class_units()[name] for name in names] for each in (source, *networks)]
        yield "networks", lambda: paired_by_seed(every)


def comparison_rows(
    source: Source,
    labels: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    found: Estimates,
    where: tuple[Statement, str, str, Sequence[str]],
    level: float,
    networks: int = 1,
) -> Iterator[dict[str, Any]]:
    """The fields of every pair on one column; ``networks`` counts them where they are no part of the estimates."""
    statement, group, column, sets = where
    table = compare_pairs(found, pairs=pairs, level=level)
    n_id, n_ood, n_classes = source.counts(sets)
    networks = next((part.units for part in found.parts if part.what == "networks"), networks)
    for number, (a, b) in enumerate(pairs):
        yield {
            "statement": statement,
            "group": group,
            "set": column,
            "first": labels[a],
            "second": labels[b],
            "first_value": float(found.values[a]),
            "second_value": float(found.values[b]),
            "difference": float(table.difference[number]),
            "low": float(table.low[number]),
            "high": float(table.high[number]),
            "level": level,
            "p": float(table.p[number]),
            "p_adjusted": float(table.p_adjusted[number]),
            "family": table.family,
            "comparisons": len(pairs),
            "detectable": detectable_difference(
                float(table.error[number]), alpha=1.0 - level, freedom=float(table.freedom[number])
            ),
            "n_id": n_id,
            "n_ood": n_ood,
            "n_classes": n_classes if statement != "images" else 0,
            "n_networks": networks,
        }


def _chosen(asked: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    for name in asked or ():
        if name not in known:
            raise UnknownNameError("detector", name, known, f"Scored here: {', '.join(known)}")
    return list(dict.fromkeys(asked or known))


def shared_detectors(runs: Sequence[Result], asked: Sequence[str] | None = None) -> list[str]:
    """The detectors that all of the runs have, or those that were asked for."""
    first, *others = runs
    shared = [name for name in first.scores.detectors if all(name in each.scores.detectors for each in others)]
    if not shared:
        raise DataError(f"{' and '.join(each.record.id for each in runs)} have no detector in common")
    return _chosen(asked, shared)


_KEY = ["set", "role", "unit", "sample_id"]


def _side_by_side(
    first: Result, second: Result, detectors: Sequence[str]
) -> tuple[list[Scored], list[tuple[int, int]]]:
    """The detectors of both runs on the images that both scored, and which to compare."""
    labels = [each.record.model for each in (first, second)]
    if labels[0] == labels[1]:
        labels = [each.record.id for each in (first, second)]
    if labels[0] == labels[1]:
        raise DataError(f"both are run {labels[0]}; to compare its detectors, give it once")
    tables = _shared_rows(first, second)
    scored = [Scored(f"{name} of {label}", table, name) for name in detectors for label, table in zip(labels, tables)]
    return scored, [(2 * number, 2 * number + 1) for number in range(len(detectors))]


def _shared_rows(first: Result, second: Result) -> tuple[ScoreTable, ScoreTable]:
    """Both tables cut to the sets and images that they share, in one order, whatever else either measured."""
    names = [each.record.benchmark for each in (first, second)]
    if names[0] != names[1]:
        raise DataError(f"the runs are of different benchmarks, {names[0]} and {names[1]}")
    if first.record.benchmark_version != second.record.benchmark_version:
        known = second.record.sets
        shared = {
            name
            for name, own in first.record.sets.items()
            if name in known and known[name].fingerprint == own.fingerprint
        }
    else:
        shared = set(first.scores.sets())
    mine, theirs = (each.scores.frame.astype(dict.fromkeys(_KEY, str)).set_index(_KEY) for each in (first, second))
    index = mine.index[mine.index.isin(theirs.index) & mine.index.get_level_values("set").isin(shared)]
    tables = []
    for frame, result in ((mine, first), (theirs, second)):
        tables.append(ScoreTable(frame.loc[index].reset_index(), result.scores.context))
    for table in tables[:1]:
        if not table.sets("id_test") or not (table.sets("near") or table.sets("far")):
            raise DataError(
                f"{first.record.id} and {second.record.id} share no images of id_test and of an OOD set, so there is "
                "nothing to compare them on"
            )
    return tables[0], tables[1]


def _same_images(first: Result, other: Result, detectors: Sequence[str]) -> list[Scored]:
    """The same detectors of another network of the recipe, on the same images in the same order."""
    if first.record.model_fingerprint == other.record.model_fingerprint:
        raise DataError(f"{first.record.id} and {other.record.id} are of one network; seeds are separately trained")
    for name in detectors:
        if name not in other.scores.detectors:
            raise DataError(f"{other.record.id} has no detector {name}")
    aligned = aligned_with(first, other)
    return [Scored(name, aligned, name) for name in detectors]


def aligned_with(first: Result, other: Result) -> ScoreTable:
    """The scores of another network on the same images, in the order of the first."""
    for what in ("benchmark", "benchmark_version"):
        if getattr(first.record, what) != getattr(other.record, what):
            raise DataError(f"networks of a recipe are compared on one benchmark; {other.record.id} has another {what}")
    table, aligned = _shared_rows(first, other)
    if len(table) < len(first.scores):
        raise DataError(f"{other.record.id} lacks images of {first.record.id}; networks need the same images")
    return aligned
