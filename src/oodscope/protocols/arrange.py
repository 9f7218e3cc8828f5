"""From measurements to a table: choose one metric and one protocol, sort the detectors, mark the best."""

from collections.abc import Iterable, Sequence
from statistics import median

from oodscope.base.catalog import catalog
from oodscope.base.errors import DataError, UsageError
from oodscope.document.number import Number, marked
from oodscope.document.table import Column, Entry, Row, Table, columns, single_groups
from oodscope.document.wording import CLOSE, DOUBTED, EXPOSED, TRACKS, explanation, heading, higher_is_better, unit_of
from oodscope.metrics.metric import MEAN
from oodscope.protocols.registry import headline_metrics, protocol_of
from oodscope.results.measurement import Measurement, Measurements


def pivot(measurements: Measurements, protocol: str, metric: str | None = None) -> Table:
    """The table of one metric (the headline of the protocol by default); rows sorted by its first mean, best first.

    Two values for one cell are an error: filter by run first.
    """
    metric = metric or headline_metrics(protocol, measurements)[0]
    higher, judged = higher_is_better(metric), protocol_of(protocol)
    chosen = measurements.filter(protocol=protocol, metric=metric)
    if not chosen:
        known = ", ".join(measurements.filter(metric=metric).distinct("protocol")) or "none"
        raise UsageError(f"no {metric} was measured under protocol {protocol!r}; protocols with it: {known}")
    sets = ordered((Column(row.group, row.set) for row in chosen), protocol)
    cells = _cells(chosen)
    rows = []
    for tuning in TRACKS:
        detectors = dict.fromkeys(row.detector for row in chosen if row.tuning == tuning)
        track = [[cells.get((tuning, name, column)) for column in sets] for name in detectors]
        ranked = [
            list(numbers) if column.group in judged.unranked else _marked(numbers, higher)
            for column, numbers in zip(sets, zip(*track))
        ]
        rows += sorted(
            (Row((Entry(name),), numbers, tuning) for name, numbers in zip(detectors, zip(*ranked))),
            key=lambda row: _sort_key(row, higher),
        )
    accuracy = measurements.filter(protocol=protocol, metric="accuracy", detector="")
    return Table(
        name=f"{protocol}-{metric}",
        title=f"{heading(metric)}, protocol {protocol}",
        labels=columns("detector"),
        columns=tuple(sets),
        rows=tuple(rows),
        notes=(
            *_notes(chosen + accuracy, sets, judged.unranked),
            *_unverified(chosen),
            *judged.baselines(measurements.filter(protocol=protocol), metric),
        ),
        accuracy=tuple((row.set, Number(row.value, row.low, row.high, exposure=row.exposure)) for row in accuracy),
        facts={"protocol": protocol, "metric": metric},
        section="tuning",
        sections={str(tuning): words for tuning, words in TRACKS.items()},
    )


def ordered(columns: Iterable[Column], protocol: str) -> list[Column]:
    """Each column once, as in every table: leading groups first, in each the mean before its sets.

    The mean is what rows are sorted by, and what a narrow screen shows.
    """
    seen = dict.fromkeys(columns)
    groups = dict.fromkeys([*protocol_of(protocol).groups, *(column.group for column in seen)])
    return [c for group in groups for c in sorted(seen, key=lambda c: c.name != MEAN) if c.group == group]


def _cells(chosen: Iterable[Measurement]) -> dict[tuple[str, str, Column], Number]:
    cells: dict[tuple[str, str, Column], Number] = {}
    for row in chosen:
        key = (row.tuning, row.detector, Column(row.group, row.set))
        if key in cells:
            raise DataError(
                f"two values of {row.metric} for {row.detector} on {key[2].words} ({row.protocol}); "
                "choose one run, such as filter(run=...)"
            )
        rank, may_be_best, population = _rank(row)
        cells[key] = Number(
            row.value,
            row.low,
            row.high,
            class_low=row.class_low,
            class_high=row.class_high,
            rank=rank,
            may_be_best=may_be_best,
            population=population,
            exposure=row.exposure,
            doubts=(row.unranked,) if row.unranked else (),
            unit=unit_of(row.metric),
        )
    return cells


def _marked(column: Sequence[Number | None], higher: bool) -> list[Number | None]:
    """A column with its best marked among those that are ranked."""
    ranked = iter(marked([number for number in column if number is None or not number.doubts], higher))
    return [number if number is not None and number.doubts else next(ranked) for number in column]


def _rank(row: Measurement) -> tuple[tuple[int, int] | None, bool | None, str]:
    """The ranks of the wider statement that was made: of other OOD classes, else of other images of these."""
    low, high, best = row.class_rank_low, row.class_rank_high, row.class_may_be_best
    population = "other OOD classes"
    if low is None or high is None:
        low, high, best, population = row.rank_low, row.rank_high, row.may_be_best, "other images of these classes"
    if low is None or high is None:
        return None, None, ""
    return (low, high), None if best is None else bool(best), population


def _unverified(chosen: Measurements) -> list[str]:
    """Detectors whose equation is that of an abstract: their rows do not speak for the paper."""
    known = catalog("detectors")
    names = [
        name for name in chosen.distinct("detector") if known.get(name.partition("(")[0], {}).get("unverified_form")
    ]
    if not names:
        return []
    return [f"Unverified form (known from the paper's abstract, details may differ): {', '.join(names)}."]


def _class_note(chosen: Measurements) -> str:
    ratios = [
        (row.class_high - row.class_low) / (row.high - row.low)
        for row in chosen
        if row.class_low is not None and row.class_high is not None and row.low is not None and row.high is not None
        if row.high > row.low
    ]
    if not ratios:
        return ""
    return (
        f"For other OOD classes intervals are {median(ratios):.1f} times as wide (median) as for other images of these "
        "classes; pages show the wider ones, text and files the narrower."
    )


def _sort_key(row: Row, higher: bool) -> tuple[bool, float, str]:
    lead = row.numbers[0]
    return (lead is None or bool(lead.doubts), 0.0 if lead is None else lead.value * (-1 if higher else 1), row.name)


def _lead(columns: Sequence[Column]) -> str:
    """What rows are ranked by: the first mean, or the set itself where its group has one."""
    first = columns[0]
    if first.name == MEAN and first.group in single_groups((each.group, each.name) for each in columns):
        first = next(each for each in columns if each.group == first.group and each.name != MEAN)
    return first.words


def _notes(chosen: Measurements, columns: Sequence[Column], unranked: Sequence[str]) -> list[str]:
    metric = chosen[0].metric
    notes = [explanation(metric)]
    ranked = chosen.filter(metric=metric)
    alike = " among detectors tuned alike" if len(ranked.distinct("tuning")) > 1 else ""
    methods = {(row.level, row.interval) for row in ranked if row.low is not None}
    if methods:
        said = "; ".join(f"{100 * (level or 0):g} % ({method})" for level, method in sorted(methods, key=str))
        notes.append(
            f"Bold: best of its column{alike}. {CLOSE}: its interval overlaps that of the best; by this "
            f"table alone they are statistically indistinguishable; a paired test may separate them. Intervals: {said}."
        )
    else:
        notes.append(f"Bold: best of its column{alike}. No intervals were measured.")
    if any(row.rank_low is not None for row in chosen):
        notes.append(
            f"Rank: the places on {_lead(columns)} that paired tests of all pairs{alike} allow, all at once "
            f"(step-down max-T, 95 %), for {_rank(next(row for row in chosen if row.rank_low is not None))[2]}."
        )
    if wide := _class_note(chosen):
        notes.append(wide)
    if shown := list(dict.fromkeys(c.group for c in columns if c.group in unranked)):
        notes.append(f"Columns of {', '.join(shown)} are shown for information and not ranked.")
    if "csid" in shown and metric == "auroc":
        notes.append("csid: ID against covariate-shifted ID; 50 means no reaction to the shift.")
    if doubted := dict.fromkeys(f"{row.detector}: {row.unranked}" for row in chosen if row.unranked):
        notes.append(f"{DOUBTED}: not ranked ({'; '.join(doubted)}).")
    if exposed := dict.fromkeys(said for row in chosen for said in row.exposure.split("; ") if said):
        notes.append(f"{EXPOSED}: the network has met images of this value before ({'; '.join(exposed)}).")
    return notes
