"""Board: many standings, arranged in tables in which only like stands beside like."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev

import numpy as np

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.document.number import Number
from oodscope.document.table import Column
from oodscope.document.wording import higher_is_better, unit_of
from oodscope.leaderboard.records.entry import Track
from oodscope.leaderboard.records.standing import Standing, TuningTrack
from oodscope.metrics.comparison.influence import SetUnits, half_a_failure, join_sets
from oodscope.metrics.comparison.networks import beside
from oodscope.metrics.comparison.simultaneous import rank_intervals, rank_ranges
from oodscope.metrics.interval import t_interval
from oodscope.metrics.metric import MEAN
from oodscope.metrics.ranking.placements import Placements
from oodscope.protocols.arrange import ordered
from oodscope.protocols.registry import headline_metrics, protocol_of
from oodscope.results.measurement import Measurement
from oodscope.results.scoretable import JUDGED

SEEDS = 3
"""The fewest seeds whose spread is worth printing."""

PAIRED, OVERLAP = "paired tests for other images of these classes", "overlap of intervals"
BY_CLASSES = "paired tests for other OOD classes"
"""How ranks were found, and the population that they speak about."""

SAME_WORDS = "among rows of the same class names and sentences"
"""What ranks speak about where networks of one table classify by different words."""


@dataclass(frozen=True)
class Places:
    """What each image and, where the group allows it, each OOD class contributes to the mean AUROC of an entry."""

    images: Placements
    classes: tuple[SetUnits, ...] = ()


Placed = Mapping[str, Mapping[tuple[str, str], Places]]
"""By entry, then by protocol and group."""


@dataclass(frozen=True)
class Erratum:
    """An entry that another one took the place of, and why. Nothing is ever removed."""

    old: str
    new: str
    reason: str
    date: str


@dataclass(frozen=True)
class BoardRow:
    """One line of a table: an entry, or the seeds of one method.

    Parameters
    ----------
    standings : one, or those of a group that was retrained.
    cells : by column; a mean over seeds has its standard deviation as ``sd`` and Student's interval.
    ranked_by : how the ranks of its cells were found; empty if it has none.
    """

    standings: tuple[Standing, ...]
    cells: Mapping[Column, Number]
    ranked_by: str = ""

    @property
    def standing(self) -> Standing:
        """The first of its standings, which speaks for all."""
        return self.standings[0]

    @property
    def ranked(self) -> bool:
        return all(each.ranked for each in self.standings)


@dataclass(frozen=True)
class Board:
    """Standings of many entries. Benchmarks, protocols, tracks and tuning tracks are never mixed.

    Parameters
    ----------
    standings : in any order.
    errata : which entries were superseded, and why.
    placed : for ranks by paired tests; entries that it does not hold are ranked by their intervals.
    """

    standings: tuple[Standing, ...]
    errata: tuple[Erratum, ...] = ()
    placed: Placed = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        ids = [each.entry.id for each in self.standings]
        if len(set(ids)) < len(ids):
            raise DataError(f"two entries are called {next(i for i in ids if ids.count(i) > 1)!r}")

    def benchmarks(self) -> list[str]:
        """``name@version`` of every benchmark, sorted."""
        return sorted({str(each.entry.benchmark) for each in self.standings})

    def protocols(self, benchmark: str) -> list[str]:
        """The protocols with a number on this benchmark, in order of appearance."""
        found = [each for each in self.standings if str(each.entry.benchmark) == benchmark]
        if not found:
            raise UnknownNameError("benchmark", benchmark, self.benchmarks())
        return list(dict.fromkeys(name for each in found for name in each.measurements.distinct("protocol")))

    def tables(self, benchmark: str, protocol: str) -> list[tuple[Track, TuningTrack]]:
        """The tracks and tuning tracks that have a row, each a table of its own."""
        return sorted({(each.track, each.tuning) for each in self._current(benchmark, protocol)})

    def rows(
        self, benchmark: str, protocol: str, track: Track, tuning: TuningTrack, metric: str | None = None
    ) -> list[BoardRow]:
        """One table, best first: ranked rows, then those that were not checked far enough to be ranked.

        Group means of a metric carry ranks. On AUROC they come from paired tests where all ranked rows are of single
        entries with scores of the same images: for other OOD classes where classes were sampled and suffice, else for
        other images of these. Otherwise they come from the intervals: only who lies wholly above counts. Networks that
        classify by different words (class names, sentences) are not ranked against each other.
        """
        metric = metric or headline_metrics(protocol)[0]
        found = [each for each in self._current(benchmark, protocol) if (each.track, each.tuning) == (track, tuning)]
        rows = [_row(members, protocol, metric) for members in _families(found)]
        rows = [row for row in rows if row.cells]
        ranked = self._ranks_by_words([row for row in rows if row.ranked], protocol, metric)
        unranked = [row for row in rows if not row.ranked]
        return _sorted(ranked, protocol, metric) + _sorted(unranked, protocol, metric)

    def method(self, name: str) -> list[Standing]:
        """Everything of one method, superseded entries too."""
        return self._named("method", name, {id(each): each.entry.method for each in self.standings})

    def model(self, name: str) -> list[Standing]:
        """Everything measured on one network."""
        return self._named("model", name, {id(each): each.entry.model.name for each in self.standings})

    def methods(self) -> list[str]:
        return sorted({each.entry.method for each in self.standings})

    def models(self) -> list[str]:
        return sorted({each.entry.model.name for each in self.standings})

    def _named(self, kind: str, name: str, names: Mapping[int, str]) -> list[Standing]:
        found = [each for each in self.standings if names[id(each)] == name]
        if not found:
            raise UnknownNameError(kind, name, names.values())
        return found

    def _current(self, benchmark: str, protocol: str) -> list[Standing]:
        return [
            each
            for each in self.standings
            if str(each.entry.benchmark) == benchmark
            and not each.superseded_by
            and not each.apart
            and protocol in each.measurements.distinct("protocol")
        ]

    def _ranks_by_words(self, rows: Sequence[BoardRow], protocol: str, metric: str) -> list[BoardRow]:
        """Ranks of all rows; where networks classify by different words, among the rows of the same words alone."""
        words = [row.standing.entry.model.words for row in rows]
        if len(set(filter(None, words))) < 2:
            return self._ranks(rows, protocol, metric)
        parts = [[row for row, own in zip(rows, words) if own == each] for each in dict.fromkeys(words)]
        ranked = [row for part in parts for row in self._ranks(part, protocol, metric)]
        return [replace(row, ranked_by=f"{row.ranked_by}, {SAME_WORDS}" if row.ranked_by else "") for row in ranked]

    def _ranks(self, rows: Sequence[BoardRow], protocol: str, metric: str) -> list[BoardRow]:
        if len(rows) < 2:
            return list(rows)
        ranks: dict[Column, list[tuple[int, int]]] = {}
        how = ""
        for column in [column for column in rows[0].cells if _rankable(column, protocol)]:
            if any(column not in row.cells for row in rows):
                continue
            paired = self._paired(rows, protocol, column) if metric == "auroc" else None
            how = OVERLAP if paired is None else how or paired[1]
            ranks[column] = (
                paired[0] if paired else _overlap_ranks([row.cells[column] for row in rows], higher_is_better(metric))
            )
        return [
            replace(
                row,
                cells={c: replace(cell, rank=ranks[c][n]) if c in ranks else cell for c, cell in row.cells.items()},
                ranked_by=how,
            )
            for n, row in enumerate(rows)
        ]

    def _paired(
        self, rows: Sequence[BoardRow], protocol: str, column: Column
    ) -> tuple[list[tuple[int, int]], str] | None:
        if column.name != MEAN or any(len(row.standings) > 1 for row in rows):
            return None
        if len({_images(row.standing) for row in rows}) > 1:
            return None
        placed = [self.placed.get(row.standing.entry.id, {}).get((protocol, column.group)) for row in rows]
        known = [each for each in placed if each is not None]
        if len(known) < len(rows):
            return None
        if all(each.classes for each in known) and len({_drawn(each) for each in known}) == 1:
            least = half_a_failure(known[0].images)
            return rank_intervals(join_sets(beside([each.classes for each in known]), least)), BY_CLASSES
        return rank_ranges([each.images for each in known]), PAIRED


def _families(standings: Iterable[Standing]) -> Iterator[tuple[Standing, ...]]:
    """Single entries, and together those of a family that were retrained."""
    groups: dict[tuple[str, ...], list[Standing]] = {}
    for each in standings:
        together = each.tier == "retrained" and each.entry.group
        groups.setdefault(each.family if together else (each.entry.id,), []).append(each)
    yield from map(tuple, groups.values())


def _row(members: tuple[Standing, ...], protocol: str, metric: str) -> BoardRow:
    found: dict[Column, list[Measurement]] = {}
    for each in members:
        for row in each.measurements.filter(protocol=protocol, metric=metric):
            found.setdefault(Column(row.group, row.set), []).append(row)
    return BoardRow(members, {column: _cell(found[column]) for column in ordered(found, protocol)})


def _cell(rows: Sequence[Measurement]) -> Number:
    first, unit = rows[0], unit_of(rows[0].metric)
    exposure = "; ".join(dict.fromkeys(row.exposure for row in rows if row.exposure))
    if len(rows) == 1:
        return Number(
            first.value,
            first.low,
            first.high,
            class_low=first.class_low,
            class_high=first.class_high,
            exposure=exposure,
            unit=unit,
        )
    values = [row.value for row in rows]
    interval = t_interval(np.array(values), 0.95)
    return Number(fmean(values), interval.low, interval.high, sd=stdev(values), exposure=exposure, unit=unit)


def _rankable(column: Column, protocol: str) -> bool:
    """Means of groups in which a detector can win, and the columns of protocols without groups, such as attacks."""
    judged = protocol_of(protocol)
    return column.group not in judged.unranked and (column.name == MEAN or column.group not in judged.groups)


def _overlap_ranks(cells: Sequence[Number], higher: bool) -> list[tuple[int, int]]:
    def beats(a: Number, b: Number) -> bool:
        if a.low is None or a.high is None or b.low is None or b.high is None:
            return False
        return a.low > b.high if higher else a.high < b.low

    return [
        (1 + sum(beats(other, cell) for other in cells), len(cells) - sum(beats(cell, other) for other in cells))
        for cell in cells
    ]


def _sorted(rows: Sequence[BoardRow], protocol: str, metric: str) -> list[BoardRow]:
    sign = -1.0 if higher_is_better(metric) else 1.0
    columns = ordered((column for row in rows for column in row.cells), protocol)

    def key(row: BoardRow) -> tuple[tuple[bool, float], str]:
        lead = row.cells.get(columns[0])
        return (lead is None, 0.0 if lead is None else sign * lead.value), row.standing.entry.method

    return sorted(rows, key=key)


def _drawn(places: Places) -> tuple[tuple[str, int, tuple[str, ...] | None], ...]:
    """The sets and classes that an entry's units are of."""
    return tuple((each.name, len(each.of_ood), each.classes) for each in places.classes)


def _images(standing: Standing) -> frozenset[tuple[str, str, str]]:
    """What was judged on: sets, roles and lists."""
    sets = standing.entry.benchmark.sets.items()
    return frozenset((name, each.role, each.list_hash) for name, each in sets if each.role in JUDGED)
