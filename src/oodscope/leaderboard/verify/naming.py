"""Names that an entry may not have: those of the board's own files, and those of published tables."""

from functools import cache

from pydantic import TypeAdapter, ValidationError

from oodscope.base.errors import DataError
from oodscope.leaderboard.published import boards, own
from oodscope.leaderboard.published.table import published_standings, published_tables
from oodscope.leaderboard.records.keeping import RESERVED
from oodscope.leaderboard.records.text import Slug


def check_id(id: object) -> str:
    """The id of an entry, if it can be a folder and an address and nothing else is called so.

    Ids of the packaged tables, and all that begin like them, are taken: an entry of that name would stand in for the
    published row on every page.
    """
    try:
        name: str = TypeAdapter(Slug).validate_python(id, strict=True)
    except ValidationError as error:
        raise DataError("the id must be small letters, digits, '-', '_' and '.', at most 80") from error
    if name in RESERVED:
        raise DataError(f"an entry cannot have the id {name!r}: the board keeps its own files there")
    taken = (*(table.name for table in published_tables()), boards.PREFIX, own.PREFIX)
    if name in _published_ids() or name.startswith(tuple(f"{each}-" for each in taken)):
        raise DataError(f"an entry cannot have the id {name!r}: ids of this form are those of a published table")
    return name


@cache
def _published_ids() -> frozenset[str]:
    return frozenset(each.entry.id for each in published_standings())
