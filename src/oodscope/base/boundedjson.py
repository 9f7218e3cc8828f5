"""JSON from outside: small, shallow, without repeated keys and without NaN."""

import json
from pathlib import Path
from stat import S_ISREG
from typing import Any, NoReturn

from oodscope.base.errors import DataError

MOST_BYTES, DEEPEST = 2 * 2**20, 32


def read_bounded_json(path: Path, most: int = MOST_BYTES) -> dict[str, Any]:
    """The object in a file; anything that would cost time, memory or clarity is refused before it is parsed."""
    size = plain_size(path)
    if size > most:
        raise DataError(f"{path}: {size:,} bytes; at most {most:,} are read")
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON: {error}") from error
    return bounded_json(text, str(path))


def bounded_json(text: str, where: str, deepest: int = DEEPEST) -> dict[str, Any]:
    """The object that a text is; messages begin with ``where``."""
    if _depth(text) > deepest:
        raise DataError(f"{where}: nested more than {deepest} levels deep")
    try:
        content = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except ValueError as error:
        raise DataError(f"{where}: not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{where}: not a JSON object")
    return content


def plain_size(path: Path) -> int:
    """The size of a plain file; a link, a folder or a device is refused, wherever it points."""
    try:
        found = path.lstat()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    if not S_ISREG(found.st_mode):
        raise DataError(f"{path}: not a plain file; links and special files are not read")
    return found.st_size


def _depth(text: str) -> int:
    """How deep brackets nest outside of strings: one look at each character, no recursion."""
    deepest = depth = 0
    quoted = escaped = False
    for char in text:
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)!r} stands there twice")
    return content


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
