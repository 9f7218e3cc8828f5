"""Strings that strangers wrote: kept as data, made harmless to whoever prints them.

Markup stays as it is, because a page escapes what it shows; what no page can escape is taken out here: control
characters that move a cursor or start an escape sequence, and the invisible ones that turn the direction of text.
"""

import math
import unicodedata
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, StringConstraints

NOT_KNOWN = "not known"
"""What a record says where nobody wrote it down."""

LINE, TEXT, LINK = 400, 10_000, 500
"""The most characters of a line, of a text of several lines and of a link."""

_MOST_VALUES, _DEEPEST = 2000, 8


def one_line(text: str) -> str:
    """The text without control and format characters, every run of white space one space."""
    if text.isprintable():  # nearly every text of a table; Python means by it what _printable leaves
        return " ".join(text.split())
    return " ".join(_printable(text.replace("\n", " ").replace("\t", " ")).split())


def several_lines(text: str) -> str:
    """The same, line breaks kept."""
    lines = (_printable(line.replace("\t", "    ")).rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    return "\n".join(lines).strip("\n")


def https_link(link: str) -> str:
    """The link if it is plain https with a host; empty stays empty. Anything a browser might run is refused."""
    if not link:
        return link
    if not link.isascii() or any(char.isspace() or not char.isprintable() or char in "\"'<>\\`{}|^" for char in link):
        raise ValueError("must be a plain https:// address, special characters percent-encoded")
    try:
        parts = urlsplit(link)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"not an address: {error}") from error
    if parts.scheme != "https" or not parts.hostname or parts.username is not None or port not in (None, 443):
        raise ValueError("must begin with https:// and a host name, without user or port")
    return link


def plain_json(value: Any) -> Any:
    """Plain JSON values, strings made harmless, of bounded depth and number."""
    return _plain(value, 0, [_MOST_VALUES])


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if depth > _DEEPEST or left[0] < 0:
        raise ValueError(f"more than {_DEEPEST} levels or {_MOST_VALUES} values")
    if isinstance(value, str):
        if len(value) > LINE:
            raise ValueError(f"a string of more than {LINE} characters")
        return one_line(value)
    if isinstance(value, dict):
        return {_plain(str(key), depth, left): _plain(each, depth + 1, left) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, depth + 1, left) for each in value]
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"{value!r} is not a plain JSON value")


def _printable(text: str) -> str:
    """Without control, format (bidirectional overrides, zero width) and unassigned characters; odd spaces are plain."""
    kinds = ((char, unicodedata.category(char)) for char in text)
    return "".join(" " if kind[0] == "Z" else char for char, kind in kinds if kind[0] != "C")


Line = Annotated[str, StringConstraints(max_length=LINE), AfterValidator(one_line)]
Name = Annotated[str, StringConstraints(max_length=LINE), AfterValidator(one_line), StringConstraints(min_length=1)]
Text = Annotated[str, StringConstraints(max_length=TEXT), AfterValidator(several_lines)]
Link = Annotated[str, StringConstraints(max_length=LINK), AfterValidator(https_link)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*$", max_length=80)]
"""A name that is also a folder and an address: no separator, nothing hidden, no two dots."""
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Plain = Annotated[dict[str, Any], BeforeValidator(plain_json)]
