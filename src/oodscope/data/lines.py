"""The text of a list of images, whoever saved it."""

import codecs
from pathlib import Path

from oodscope.base.errors import DataError


def read_list_text(name: str, path: Path) -> str:
    """The content of a list for set ``name``, without a byte order mark.

    Bytes that are no UTF-8 survive as they are, because file names may hold any.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"set {name!r}: cannot read the list {path}: {error.strerror}") from error
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"set {name!r}: the list {path} is UTF-16; save it as UTF-8")
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def check_unique(paths: list[str], places: list[str]) -> None:
    """Refuse a path that is listed twice: its image would count twice, and its rows could not be told apart."""
    first: dict[str, str] = {}
    for path, place in zip(paths, places):
        if (before := first.setdefault(path, place)) != place:
            raise DataError(f"{place}: {path!r} is listed already ({before}); remove one of the two")
