"""Labels as people write them: numbers, or names of classes."""

import codecs
import re
from collections.abc import Sequence
from pathlib import Path

from oodscope.base.errors import DataError
from oodscope.base.files import content_of


def read_class_names(path: Path | str) -> list[str]:
    """The names in order: the first line names the first logit."""
    try:
        text = content_of(Path(path)).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the class names in {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    names = [line.strip() for line in text.rstrip().split("\n")]
    first: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"{path}, line {number}: empty; each line names the class of one logit")
        if (before := first.setdefault(name, number)) != number:
            raise DataError(f"{path}, line {number}: {name!r} stands in line {before} already; rename one of the two")
    return names


def read_list_text(name: str, path: Path) -> str:
    """The content of a list for set ``name``, without a byte order mark.

    Bytes that are not UTF-8 survive as they are, because file names may hold any.
    """
    try:
        content = content_of(path)
    except OSError as error:
        raise DataError(f"set {name!r}: cannot read the list {path}: {error.strerror}") from error
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"set {name!r}: the list {path} is UTF-16; save it as UTF-8")
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def check_unique(paths: list[str], places: list[str]) -> None:
    """Refuse a path that is listed twice: its image would count twice, and its rows could not be distinguished."""
    first: dict[str, str] = {}
    for path, place in zip(paths, places):
        if (before := first.setdefault(path, place)) != place:
            raise DataError(f"{place}: {path!r} is listed already ({before}); remove one of the two")


_NUMBER = re.compile(r"-?[0-9]{1,18}")


def is_number(text: str) -> bool:
    """Whether a label is written as an integer."""
    return _NUMBER.fullmatch(text) is not None


def read_labels(texts: Sequence[str], places: Sequence[str]) -> tuple[list[int], list[str]]:
    """Labels from their text, and the class names; no names if the texts are numbers.

    All are numbers or all are names: a name among numbers is more likely a slip than a class. Names are
    numbered in sorted order.

    Parameters
    ----------
    texts : one per image.
    places : where each stands, for messages, such as ``"list.csv, line 3"``.
    """
    numeric = is_number(texts[0])
    for text, place in zip(texts, places):
        if not text:
            raise DataError(f"{place}: no label; write -1 for an image without a class")
        if is_number(text) != numeric:
            others = "numbers" if numeric else "names"
            raise DataError(f"{place}: the label {text!r} stands among labels that are {others}")
    if numeric:
        return [int(text) for text in texts], []
    classes = sorted(set(texts))
    code = {name: number for number, name in enumerate(classes)}
    return [code[text] for text in texts], classes


def class_names(labels: Sequence[int], names: Sequence[str], places: Sequence[str]) -> list[str]:
    """The names of the classes 0, 1, ... from numbers and names that stand side by side."""
    name_of: dict[int, str] = {}
    number_of: dict[str, int] = {}
    for label, name, place in zip(labels, names, places):
        if name_of.setdefault(label, name) != name:
            raise DataError(f"{place}: label {label} is called {name!r} here and {name_of[label]!r} before")
        if number_of.setdefault(name, label) != label:
            raise DataError(f"{place}: the class {name!r} has label {label} here and {number_of[name]} before")
    ordered = sorted(name_of)
    stray = next((label for number, label in enumerate(ordered) if label != number), None)
    if stray is not None:
        place = places[list(labels).index(stray)]
        raise DataError(
            f"{place}: label {stray}: with names beside them, labels must count 0, 1, ... without gaps; "
            "leave the numbers out to match by name alone"
        )
    return [name_of[label] for label in ordered]
