"""Published tables as standings of tier ``reported``: shown in grey beside what was measured, never ranked."""

from oodscope.results.leaderboard.published.table import PublishedTable, published_tables
from oodscope.results.leaderboard.standing import Standing

__all__ = ["PublishedTable", "published_standings", "published_tables"]


def published_standings() -> list[Standing]:
    """The standings of all published tables."""
    return [standing for table in published_tables() for standing in table.standings()]
