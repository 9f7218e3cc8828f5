"""The tables of the front page: for each benchmark its highest rows of all tracks, and whether the lead is certain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from oodscope.document.chapter import anchor_of
from oodscope.document.number import Number
from oodscope.document.table import Column
from oodscope.leaderboard.records.spread import spread_ranks
from oodscope.leaderboard.site.lines import Line, TableView, in_brackets
from oodscope.leaderboard.site.strip import Rail, Strip
from oodscope.leaderboard.site.tables import TablePages
from oodscope.leaderboard.site.words import TRACKS
from oodscope.metrics.metric import MEAN

SHOWN = 15
AGAIN = 5
"""Rows that were computed again and stand below the highest ones: a reader may trust them more, and must see them."""

NEAR, FAR = Column("near", MEAN), Column("far", MEAN)
_PASSES = "fpr95_id_positive"


@dataclass(frozen=True)
class FrontRow:
    """One row: its place, and the numbers that readers look for first.

    Parameters
    ----------
    place : the ranks that the comparisons allow; in brackets for reported rows, whose spread over training runs is all
        that is known. ``cannot say`` for a single run.
    strip : the near value and its interval on the rail of the table.
    below : computed again, and lower than the rows that are shown for their values.
    """

    place: str
    line: Line
    track: str
    near: Number
    far: Number | None
    passes: Number | None
    shifted: Number | None
    strip: Strip
    below: bool = False


@dataclass(frozen=True)
class FrontTable:
    """One benchmark on the front page.

    Parameters
    ----------
    lead : who leads near-OOD and whether that is certain, as a sentence.
    total : rows of the benchmark's own page, of which the first are shown.
    """

    anchor: str
    title: str
    version: str
    page: str
    lead: str
    rows: list[FrontRow]
    total: int

    @property
    def knows_passes(self) -> bool:
        """Whether some row states what passes."""
        return any(row.passes for row in self.rows)

    @property
    def knows_shifted(self) -> bool:
        """Whether some row was measured under covariate shift."""
        return any(row.shifted for row in self.rows)


def front_tables(found: Sequence[TablePages]) -> Iterator[FrontTable]:
    """A table for each benchmark with near-OOD means under the standard protocol, in the order of its pages."""
    for pages in found:
        if pages.protocol != "standard" or NEAR not in pages.leading.columns:
            continue
        shifted = next(
            (each for each in found if each.benchmark == pages.benchmark and each.protocol == "full_spectrum"), None
        )
        lines = [
            (line, near, TRACKS[ranking.track][0])
            for ranking in pages.leading.rankings
            for line in ranking.lines
            if (near := _cell(pages.leading, line, NEAR)) is not None
        ]
        lines.sort(key=lambda each: -each[1].value)
        others = _by_method(shifted.leading) if shifted else {}
        passing = {line.entry.id: cell for line, cell in _column(pages, _PASSES)}
        printed = printed_ranks([(line, near) for line, near, _ in lines])
        below = [each for each in lines[SHOWN:] if each[0].row.ranked][:AGAIN]
        chosen = [*lines[:SHOWN], *below]
        rail = Rail.of([near for _, near, _ in chosen], higher=True)
        rows = [
            FrontRow(
                line.rank_words if line.row.ranked and line.rank else in_brackets(printed.get(line.entry.id)),
                line,
                track,
                near,
                _cell(pages.leading, line, FAR),
                passing.get(line.entry.id),
                others.get(_key(line)),
                rail.strip(near),
                place >= SHOWN,
            )
            for place, (line, near, track) in enumerate(chosen)
        ]
        lead = lead_sentence([(line, near) for line, near, _ in lines])
        yield FrontTable(
            f"front-{anchor_of(pages.benchmark)}", pages.title, pages.benchmark, pages.page, lead, rows, len(lines)
        )


def method_matrix(found: Sequence[TablePages], fronts: Sequence[FrontTable]) -> list[tuple[str, list[Number | None]]]:
    """Each method with its highest near-OOD AUROC on each benchmark, those on most benchmarks first."""
    best: dict[str, dict[str, Number]] = {}
    for pages in found:
        if pages.protocol != "standard":
            continue
        for ranking in pages.leading.rankings:
            for line in ranking.lines:
                near = _cell(pages.leading, line, NEAR)
                own = best.setdefault(line.entry.method, {})
                if near is not None and (pages.benchmark not in own or near.value > own[pages.benchmark].value):
                    own[pages.benchmark] = replace(near, best=False)
    versions = [front.version for front in fronts]
    order = sorted(best, key=lambda name: (-len(best[name]), -sum(cell.value for cell in best[name].values()), name))
    return [(name, [best[name].get(version) for version in versions]) for name in order if best[name]]


def lead_sentence(lines: Sequence[tuple[Line, Number]]) -> str:
    """Who leads near-OOD and whether that is certain.

    Ranked rows decide where there are any: whoever may be first by the comparisons of their table is named. Printed
    rows decide nothing: the highest is named with the number of rows that may be first by the spreads they state.

    Parameters
    ----------
    lines : all tracks, highest near value first.
    """
    ranked = [(line, near) for line, near in lines if line.row.ranked]
    printed = [(line, near) for line, near in lines if not line.row.ranked]
    parts = []
    if ranked:
        first, near = ranked[0]
        may = [line.entry.method for line, _ in ranked if line.rank is not None and line.rank[0] == 1]
        others = [name for name in dict.fromkeys(may) if name != first.entry.method]
        sure = (
            f"not certain: {len(others)} more may be first"
            if others
            else "no other ranked row of its track may be first"
        )
        parts.append(
            f"Of the rows that were computed again {first.entry.method} leads near-OOD with {near.number}; {sure}."
        )
    if printed:
        first, near = printed[0]
        said = f"{first.entry.method} is highest on near-OOD of the rows that are only reported: {near.number}"
        parts.append(f"{said}. {_reported(near, [each for _, each in printed])}.")
    return " ".join(parts)


def printed_ranks(lines: Sequence[tuple[Line, Number]]) -> dict[str, tuple[int, int] | None]:
    """The ranks of all reported rows of a benchmark by their printed spreads, by entry."""
    own = [(line.entry.id, near) for line, near in lines if not line.row.ranked]
    ranks = spread_ranks([near.value for _, near in own], [near.sd for _, near in own])
    return {name: rank for (name, _), rank in zip(own, ranks)}


def _reported(best: Number, numbers: Sequence[Number]) -> str:
    if best.sd is None:
        return "It is a single run, so whether it leads cannot be said"
    ranks = spread_ranks([each.value for each in numbers], [each.sd for each in numbers])
    first = sum(rank is not None and rank[0] == 1 for rank in ranks)
    single = sum(rank is None for rank in ranks)
    more = f"{first - 1} of {len(numbers) - single - 1} others may be first too for other training runs"
    alone = "no other row with a spread may be first for other training runs"
    runs = f", {single} single run{'s' * (single > 1)} cannot say" if single else ""
    return f"Not certain: {more if first > 1 else alone}{runs}, and nobody computed it again"


def _cell(view: TableView, line: Line, column: Column) -> Number | None:
    return line.cells[view.columns.index(column)] if column in view.columns else None


def _column(pages: TablePages, metric: str) -> Iterator[tuple[Line, Number]]:
    """The near-OOD mean of each line by another metric."""
    for view in pages.views:
        if view.metric == metric:
            for ranking in view.rankings:
                for line in ranking.lines:
                    if (cell := _cell(view, line, NEAR)) is not None:
                        yield line, cell


def _by_method(view: TableView) -> dict[tuple[str, str], Number]:
    found: dict[tuple[str, str], Number] = {}
    for ranking in view.rankings:
        for line in ranking.lines:
            if (cell := _cell(view, line, NEAR)) is not None:
                found.setdefault(_key(line), cell)
    return found


def _key(line: Line) -> tuple[str, str]:
    """Rows of two protocols belong together where method and architecture are the same."""
    return line.entry.method, line.entry.model.architecture.replace("-", "")
