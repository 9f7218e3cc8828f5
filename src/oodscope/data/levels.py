"""What nested folders say about the images in them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from oodscope.base.errors import DataError
from oodscope.data.sources.files import printable


def read_levels(name: str, root: Path, files: Sequence[str], levels: Sequence[str]) -> dict[str, list[str]]:
    """Per level, the folder that each image lies in.

    Folders deeper than the last level belong to it. An image that lies too high, a folder without an image and a class
    folder of one name under two parents are errors.

    Parameters
    ----------
    name : of the set, for messages.
    files : of the images, relative to ``root``.
    levels : names of the nested folders, from the outermost.
    """
    if not levels or len(set(levels)) < len(levels):
        raise DataError(f"set {name!r}: the levels of its folders need names of their own, not {list(levels)}")
    depth = len(levels)
    paths = [tuple(file.split("/")[:-1][:depth]) for file in files]
    loose = [file for file, path in zip(files, paths) if len(path) < depth]
    if loose:
        kind = "class folders" if depth == 1 else f"folders of {depth} levels ({'/'.join(levels)})"
        where = "a class" if depth == 1 else "them"
        raise DataError(
            f"set {name!r}: {root} holds {kind} and {len(loose)} images beside them; move the images into {where}"
            f" (the first: {printable(loose[0])})"
        )
    held = set(paths)
    for folder in _folders(root, depth):
        if not any(path[: len(folder)] == folder for path in held):
            # left out, it would shift the numbers of all classes after it
            raise DataError(
                f"set {name!r}: the class folder {printable(str(root.joinpath(*folder)))} holds no image; remove it"
            )
    for level in range(1, depth):
        parents: dict[str, tuple[str, ...]] = {}
        for path in sorted(held):
            parent = parents.setdefault(path[level], path[:level])
            if parent != path[:level]:
                one, two = printable("/".join(parent)), printable("/".join(path[:level]))
                raise DataError(
                    f"set {name!r}: the {levels[level]} {printable(path[level])!r} lies under {one!r} and {two!r}; "
                    "give each its own name"
                )
    return {level: list(column) for level, column in zip(levels, zip(*paths))}


def _folders(root: Path, depth: int, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every folder down to a depth, but hidden ones, as the names that lead to it."""
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and entry.name[0] != ".":
            yield (*above, entry.name)
            if depth > 1:
                yield from _folders(entry, depth - 1, (*above, entry.name))
