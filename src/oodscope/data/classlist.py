"""The class names of a classifier, one per line of a text file."""

from pathlib import Path

from oodscope.base.errors import DataError


def read_class_names(path: Path | str) -> list[str]:
    """The names in order: the first line names the first logit."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
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
