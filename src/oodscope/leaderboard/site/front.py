"""The front page: a table for each benchmark, leaders of every protocol, and how to read the rest."""

from collections.abc import Iterator, Sequence
from typing import Any

from jinja2 import Environment

from oodscope.leaderboard.published.table import published_tables
from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.site.addresses import method_key
from oodscope.leaderboard.site.fronts import front_tables, method_matrix
from oodscope.leaderboard.site.lines import Ranking
from oodscope.leaderboard.site.tables import TablePages, benchmark_summary
from oodscope.leaderboard.site.words import TIERS, TRACKS, TUNED, protocol_title


def front_page(environment: Environment, board: Board, found: Sequence[TablePages]) -> str:
    """The page as text."""
    tiers = [each.tier for each in board.standings]
    facts = {
        "entries": len(board.standings),
        "methods": len({method_key(each.entry.method) for each in board.standings}),
        "models": len(board.models()),
        "tiers": [(name, tiers.count(name)) for name in TIERS if name in tiers],
    }
    fronts = list(front_tables(found))
    return environment.get_template("site/index.html").render(
        root="",
        here="index",
        facts=facts,
        cards=list(_cards(found)),
        fronts=fronts,
        matrix=method_matrix(found, fronts),
        tables=published_tables(),
    )


def _cards(found: Sequence[TablePages]) -> Iterator[dict[str, Any]]:
    for benchmark in dict.fromkeys(each.benchmark for each in found):
        own = [each for each in found if each.benchmark == benchmark]
        yield {
            "title": own[0].title,
            "version": benchmark,
            "summary": benchmark_summary(benchmark),
            "protocols": [
                {
                    "title": protocol_title(each.protocol),
                    "page": each.page,
                    "count": sum(len(ranking.lines) for ranking in each.leading.rankings),
                    "leaders": [leader for ranking in each.leading.rankings for leader in _leader(ranking, each.page)],
                }
                for each in own
            ],
        }


def _leader(ranking: Ranking, page: str) -> Iterator[dict[str, Any]]:
    if not ranking.leaders:
        return
    first, *others = ranking.leaders
    yield {
        "track": TRACKS[ranking.track][0],
        "tuning": TUNED[ranking.tuning],
        "method": first.entry.method,
        "page": f"{page}#{first.anchors[0]}",
        "cell": first.cells[0],
        "others": len(others),
    }
