"""Lines: the rows of a board as a page shows them, one table for each track and tuning track."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, stdev

from oodscope.document.number import Number
from oodscope.document.table import Column, spans
from oodscope.document.wording import higher_is_better, places, unit_of
from oodscope.leaderboard.records.board import Board, BoardRow
from oodscope.leaderboard.records.entry import Entry, Track
from oodscope.leaderboard.records.spread import spread_ranks
from oodscope.leaderboard.records.standing import Standing, TuningTrack
from oodscope.leaderboard.site.addresses import anchor
from oodscope.leaderboard.site.words import TRACKS, TUNINGS
from oodscope.metrics.metric import MEAN
from oodscope.protocols.arrange import ordered
from oodscope.protocols.registry import protocol_of


@dataclass(frozen=True)
class Line:
    """One row of a table.

    Parameters
    ----------
    cells : one per column of the page; ``None`` where nothing was measured.
    accuracy : of the classifier on ID images.
    """

    row: BoardRow
    cells: tuple[Number | None, ...]
    accuracy: Number | None

    @property
    def standing(self) -> Standing:
        return self.row.standing

    @property
    def entry(self) -> Entry:
        return self.row.standing.entry

    @property
    def anchors(self) -> list[str]:
        """The marks of all its entries."""
        return [anchor(each.entry.id) for each in self.row.standings]

    @property
    def rank(self) -> tuple[int, int] | None:
        """Best and worst place that its leading column allows."""
        return self.cells[0].rank if self.cells and self.cells[0] is not None else None

    @property
    def rank_words(self) -> str:
        """``2`` or ``1–3``; a dash where it has none."""
        return places(self.rank) or "–"

    @property
    def flags(self) -> list[str]:
        """Reasons for care, those of all its entries."""
        return list(dict.fromkeys(flag for each in self.row.standings for flag in each.flags))

    @property
    def disputed(self) -> int:
        """How many printed numbers its scores contradict."""
        return sum(len(each.disputed) for each in self.row.standings)


def in_brackets(rank: tuple[int, int] | None) -> str:
    """The places that a printed row may have by its spread."""
    return f"({places(rank)})" if rank else "cannot say"


@dataclass(frozen=True)
class Ranking:
    """One table: the lines of one track and one tuning track, best first, and how it came to its ranks."""

    track: Track
    tuning: TuningTrack
    lines: tuple[Line, ...]
    ranked_by: str
    higher: bool = True

    @property
    def title(self) -> str:
        return f"{TRACKS[self.track][0]} · {TUNINGS[self.tuning][0]}"

    @property
    def ranked(self) -> int:
        return sum(line.row.ranked for line in self.lines)

    @cached_property
    def printed(self) -> dict[str, tuple[int, int] | None]:
        """By entry: the places that reported rows of this table allow each other for other training runs.

        They rest on the spreads that the rows state; ``None`` for a single run.
        """
        own = [(line.entry.id, line.cells[0]) for line in self.lines if line.standing.tier == "reported"]
        known = [(name, cell) for name, cell in own if cell is not None]
        sign = 1.0 if self.higher else -1.0
        ranks = spread_ranks([sign * cell.value for _, cell in known], [cell.sd for _, cell in known])
        return {name: rank for (name, _), rank in zip(known, ranks)}

    def place(self, line: Line) -> str:
        """Its rank; of a reported row, in brackets, the places among such; ``cannot say`` for a single run."""
        reported = line.standing.tier == "reported"
        return in_brackets(self.printed.get(line.entry.id)) if reported else line.rank_words

    @property
    def leaders(self) -> list[Line]:
        """Those that may be first: a rank interval that holds 1, or the only ranked one."""
        ranked = [line for line in self.lines if line.row.ranked]
        return [line for line in ranked if line.rank is None or line.rank[0] == 1]


@dataclass(frozen=True)
class TableView:
    """Everything that a page of one benchmark, protocol and metric shows."""

    benchmark: str
    protocol: str
    metric: str
    columns: tuple[Column, ...]
    rankings: tuple[Ranking, ...]

    def groups(self) -> list[tuple[str, int]]:
        """Each group of columns and how many it has."""
        return spans(column.group for column in self.columns)

    def leading_cells(self) -> list[Number]:
        """The values that the lines are sorted by."""
        lines = [line for ranking in self.rankings for line in ranking.lines]
        return [cell for line in lines if (cell := line.cells[0]) is not None]


def table_view(board: Board, benchmark: str, protocol: str, metric: str) -> TableView:
    """Ask the board for every table of a page and lay its rows out in the same columns."""
    tables = board.tables(benchmark, protocol)
    found = {
        (track, tuning): board.rows(benchmark, protocol, track, tuning, metric)
        for track in TRACKS
        for tuning in TUNINGS
        if (track, tuning) in tables
    }
    columns = tuple(ordered((column for rows in found.values() for row in rows for column in row.cells), protocol))
    rankings = tuple(
        Ranking(
            track,
            tuning,
            tuple(_lines(rows, columns, protocol, metric)),
            next((row.ranked_by for row in rows if row.ranked_by), ""),
            higher_is_better(metric),
        )
        for (track, tuning), rows in found.items()
        if rows
    )
    return TableView(benchmark, protocol, metric, columns, rankings)


def accuracy_of(standings: Sequence[Standing], protocol: str) -> Number | None:
    """How often the classifier is right on ID images, as measured or as printed; the mean over seeds has a spread."""
    cells = [cell for each in standings if (cell := _accuracy(each, protocol)) is not None]
    if len(cells) < 2:
        return cells[0] if cells else None
    values = [cell.value for cell in cells]
    return Number(fmean(values), None, None, sd=stdev(values))


def _accuracy(standing: Standing, protocol: str) -> Number | None:
    rows = standing.measurements.filter(metric="accuracy", group="id", protocol=protocol)
    own = next((row for row in rows if row.set != "pooled"), None)
    if own is None:
        return None
    return with_spread(standing, Number(own.value, own.low, own.high), protocol, "accuracy", Column("id", own.set))


def with_spread(standing: Standing, cell: Number, protocol: str, metric: str, column: Column) -> Number:
    """A printed number with the spread that was printed beside it."""
    if standing.tier != "reported":
        return cell
    where = (protocol, metric, column.group, column.name)
    for each in standing.entry.reported:
        if (each.protocol, each.metric, each.group, each.set) == where and each.spread is not None:
            return replace(cell, sd=float(each.spread) / (100.0 if each.unit == "percent" else 1.0))
    return cell


def means_of(standing: Standing, protocol: str, metric: str) -> dict[Column, Number]:
    """The cells that stand for a whole protocol: means of groups, or what there is where it has none."""
    rows = standing.measurements.filter(protocol=protocol, metric=metric)
    chosen = rows.filter(set=MEAN) or rows
    unit = unit_of(metric)
    cells = {
        Column(row.group, row.set): Number(row.value, row.low, row.high, exposure=row.exposure, unit=unit)
        for row in chosen
    }
    return {
        column: with_spread(standing, cells[column], protocol, metric, column) for column in ordered(cells, protocol)
    }


def _lines(rows: Sequence[BoardRow], columns: Sequence[Column], protocol: str, metric: str) -> Iterator[Line]:
    best = {column: _best(rows, column, protocol, metric) for column in columns}
    for row in rows:
        cells = []
        for column in columns:
            cell = row.cells.get(column)
            if cell is not None:
                cell = with_spread(row.standing, cell, protocol, metric, column)
                cell = replace(cell, best=row.ranked and cell.value == best[column])
            cells.append(cell)
        yield Line(row, tuple(cells), accuracy_of(row.standings, protocol))


def _best(rows: Sequence[BoardRow], column: Column, protocol: str, metric: str) -> float | None:
    """The best value of a column among ranked rows; none where nobody can win."""
    values = [row.cells[column].value for row in rows if row.ranked and column in row.cells]
    if column.group in protocol_of(protocol).unranked or len(values) < 2:
        return None
    return max(values) if higher_is_better(metric) else min(values)
