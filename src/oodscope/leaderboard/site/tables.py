"""TablePages: the pages of one benchmark and protocol, one for each metric that people ask for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os.path import relpath
from typing import Any

from jinja2 import Environment

from oodscope.base.catalog import catalog
from oodscope.document.wording import explanation, heading, higher_is_better, label, shown, unit_of
from oodscope.leaderboard.published.table import published_tables
from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.leaderboard.site.addresses import root_of, table_data, table_folder, table_page
from oodscope.leaderboard.site.dots import STYLES, dot_map
from oodscope.leaderboard.site.lines import TableView, table_view
from oodscope.leaderboard.site.strip import Rail
from oodscope.leaderboard.site.words import TIERS, TRACKS, TUNED, TUNINGS, protocol_summary, protocol_title
from oodscope.protocols.registry import headline_metrics

_MORE = ("auroc", "fpr95_id_positive", "fpr95_ood_positive", "aupr_out", "aupr_in")
"""Metrics with a page beside the leading one; all others are in the downloads."""


@dataclass(frozen=True)
class TablePages:
    """One benchmark under one protocol; the first view is by the leading metric."""

    benchmark: str
    protocol: str
    protocols: tuple[str, ...]
    views: tuple[TableView, ...]

    @property
    def title(self) -> str:
        return benchmark_title(self.benchmark)

    @property
    def page(self) -> str:
        """The page of the leading metric."""
        return table_page(self.benchmark, self.protocol)

    @property
    def leading(self) -> TableView:
        return self.views[0]

    def ranks(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The places of every entry by the leading metric."""
        return {
            (each.entry.id, self.protocol): line.rank
            for ranking in self.leading.rankings
            for line in ranking.lines
            if line.rank is not None
            for each in line.row.standings
        }

    def render(self, environment: Environment) -> Iterator[tuple[str, str]]:
        """Each page: where it lies and its text."""
        template = environment.get_template("site/table.html")
        for view in self.views:
            path = self._path(view.metric)
            yield path, template.render(root=root_of(path), here="tables", **self._context(view, path))

    def _path(self, metric: str) -> str:
        return table_page(self.benchmark, self.protocol, "" if metric == self.leading.metric else metric)

    def _context(self, view: TableView, path: str) -> dict[str, Any]:
        folder = table_folder(self.benchmark)
        lead = f"{view.columns[0].name} {label(view.metric)}"
        rail = Rail.of(view.leading_cells(), higher_is_better(view.metric))
        title = f"Near against far: {label(view.metric)}"
        tabs = [(name, protocol_title(name), table_page(self.benchmark, name)) for name in self.protocols]
        metrics = [(each.metric, heading(each.metric), self._path(each.metric)) for each in self.views]
        present = dict.fromkeys(ranking.track for ranking in view.rankings)
        return {
            "view": view,
            "benchmark_title": self.title,
            "protocol_title": protocol_title(self.protocol),
            "summary": " ".join(filter(None, (benchmark_summary(self.benchmark), protocol_summary(self.protocol)))),
            "protocol_tabs": [_tab(title, relpath(page, folder), name == self.protocol) for name, title, page in tabs],
            "metric_tabs": [_tab(title, relpath(page, folder), name == view.metric) for name, title, page in metrics],
            "downloads": {
                ending: relpath(table_data(self.benchmark, self.protocol, ending), folder) for ending in ("csv", "json")
            },
            "filters": _filters(view),
            "lead": lead,
            "higher": higher_is_better(view.metric),
            "rail": rail,
            "strip_ends": [shown(end, unit_of(view.metric)) for end in (rail.low, rail.high)],
            "explanation": explanation(view.metric),
            "map": dot_map(view),
            "map_title": title,
            "map_legend": [(STYLES[track], TRACKS[track][0]) for track in present] + [("open", "not ranked")],
        }


def table_pages(board: Board) -> Iterator[TablePages]:
    """The pages of every benchmark and protocol that has a number."""
    for benchmark in sorted(board.benchmarks(), key=_natural):
        views = {name: tuple(_views(board, benchmark, name)) for name in board.protocols(benchmark)}
        shown_protocols = tuple(name for name, own in views.items() if own)
        for protocol in shown_protocols:
            yield TablePages(benchmark, protocol, shown_protocols, views[protocol])


def benchmark_title(benchmark: str) -> str:
    """The name as people write it, where a published table tells."""
    name = benchmark.split("@")[0]
    titles = {key: each.title for table in published_tables() for key, each in table.benchmarks.items()}
    return titles.get(name, name)


def benchmark_summary(benchmark: str) -> str:
    """What the catalogue says of it; empty for benchmarks that are not ours."""
    name, _, version = benchmark.partition("@")
    known = catalog("benchmarks").get(name, {})
    return f"{known['summary']}." if known.get("version") == version else ""


def _views(board: Board, benchmark: str, protocol: str) -> Iterator[TableView]:
    standings = [each for each in board.standings if str(each.entry.benchmark) == benchmark]
    rows = [row for each in standings for row in each.measurements if row.protocol == protocol and row.detector]
    measured = {row.metric for row in rows}
    for metric in dict.fromkeys([*headline_metrics(protocol), *_MORE]):
        if metric in measured:
            view = table_view(board, benchmark, protocol, metric)
            if view.rankings:
                yield view


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """Numbers in a name count as numbers: CIFAR-10 stands before CIFAR-100."""
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"([0-9]+)", text)]


def _tab(title: str, page: str, here: bool) -> dict[str, Any]:
    return {"title": title, "page": page, "here": here}


def _filters(view: TableView) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Each filter: its name in the address, its title, and what can be chosen."""
    lines = [line for ranking in view.rankings for line in ranking.lines]
    tracks = {ranking.track for ranking in view.rankings}
    tunings = {ranking.tuning for ranking in view.rankings}
    tiers = {line.standing.tier for line in lines}
    architectures = sorted({line.entry.model.architecture for line in lines})
    return [
        ("track", "Track", [(name, words[0]) for name, words in TRACKS.items() if name in tracks]),
        ("tuning", "Parameters", [(name, TUNED[name]) for name in TUNINGS if name in tunings]),
        ("tier", "Checked", [(name, name) for name in TIERS if name in tiers]),
        ("architecture", "Network", [(name, name) for name in architectures if name != NOT_KNOWN]),
    ]
