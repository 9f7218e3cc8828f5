"""Sheets: all results of one method, or on one network, a table for each benchmark and protocol."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from oodscope.document.number import Number
from oodscope.document.table import Column
from oodscope.document.wording import heading, places
from oodscope.leaderboard.records.standing import Standing, Tier
from oodscope.leaderboard.site.addresses import anchor, method_page, table_page
from oodscope.leaderboard.site.lines import accuracy_of, means_of
from oodscope.leaderboard.site.words import TRACKS, TUNED, protocol_title
from oodscope.protocols.arrange import ordered
from oodscope.protocols.registry import headline_metrics

Ranks = Mapping[tuple[str, str], tuple[int, int]]
"""Best and worst place by entry and protocol."""


@dataclass(frozen=True)
class SheetLine:
    """One entry under one protocol; ``page`` is where its name leads, from the root of the site."""

    standing: Standing
    name: str
    page: str
    rank: tuple[int, int] | None
    cells: tuple[Number | None, ...]
    accuracy: Number | None

    @property
    def id(self) -> str:
        return self.standing.entry.id

    @property
    def track(self) -> str:
        """Track and tuning track in words."""
        return f"{TRACKS[self.standing.track][0]}, {TUNED[self.standing.tuning]}"

    @property
    def tier(self) -> Tier:
        return self.standing.tier

    @property
    def flags(self) -> tuple[str, ...]:
        return self.standing.flags

    @property
    def ranked(self) -> bool:
        return self.standing.ranked

    @property
    def gone(self) -> bool:
        """Whether another entry took its place."""
        return bool(self.standing.superseded_by)

    @property
    def rank_words(self) -> str:
        """``2`` or ``1–3``; a dash where it has none."""
        return places(self.rank) or "–"


@dataclass(frozen=True)
class Sheet:
    """The lines of one benchmark and protocol, by its leading metric; ``first`` says what the names are."""

    benchmark: str
    protocol: str
    first: str
    columns: tuple[Column, ...]
    lines: tuple[SheetLine, ...]

    @property
    def title(self) -> str:
        return f"{self.benchmark}, {protocol_title(self.protocol).lower()}"

    @property
    def metric(self) -> str:
        return heading(headline_metrics(self.protocol)[0])

    @property
    def page(self) -> str:
        return table_page(self.benchmark, self.protocol)


def sheets(standings: Sequence[Standing], first: str, ranks: Ranks) -> Iterator[Sheet]:
    """A sheet for each benchmark and protocol of the standings; ``first`` is ``network`` or ``method``."""
    for benchmark in sorted({str(each.entry.benchmark) for each in standings}):
        own = [each for each in standings if str(each.entry.benchmark) == benchmark]
        for protocol in dict.fromkeys(name for each in own for name in each.measurements.distinct("protocol")):
            metric = headline_metrics(protocol)[0]
            found = [(each, means_of(each, protocol, metric)) for each in own]
            columns = tuple(ordered((column for _, cells in found for column in cells), protocol))
            lines = [
                SheetLine(
                    each,
                    each.entry.model.name if first == "network" else each.entry.method,
                    _target(each, protocol, first),
                    ranks.get((each.entry.id, protocol)),
                    tuple(cells.get(column) for column in columns),
                    accuracy_of([each], protocol),
                )
                for each, cells in found
                if cells
            ]
            if lines:
                yield Sheet(benchmark, protocol, first, columns, tuple(sorted(lines, key=_order)))


def _target(standing: Standing, protocol: str, first: str) -> str:
    entry = standing.entry
    if first == "method" or standing.superseded_by:
        return f"{method_page(entry.method)}#{anchor(entry.id)}"
    return f"{table_page(str(entry.benchmark), protocol)}#{anchor(entry.id)}"


def _order(line: SheetLine) -> tuple[bool, bool, str, str]:
    return line.gone, not line.ranked, line.name, line.id
