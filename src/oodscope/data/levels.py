"""What nested folders say about the images in them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from oodscope.base.errors import DataError
from oodscope.data.sources.files import printable


def read_levels(name: str, root: Path, files: Sequence[str], levels: Sequence[str]) -> dict[str, list[str]]:
    """Per level, the folder that each image lies in.

    Folders deeper than the last level belong to it. An image that lies too high, a folder without an image, and a class
    of one name under two parents are errors.

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
    held = {path[:above] for path in paths for above in range(1, depth + 1)}
    for folder in _folders(root, depth):
        if folder not in held:
            # left out, it would shift the numbers of all classes after it
            place = printable(str(root.joinpath(*folder)))
            raise DataError(f"set {name!r}: the class folder {place} holds no image; remove it")
    for above, level in enumerate(levels[1 : levels.index(class_level(levels)) + 1], start=1):
        _refuse_two_parents(name, level, {path[: above + 1] for path in held if len(path) > above})
    return {level: list(column) for level, column in zip(levels, zip(*paths))}


def class_level(levels: Sequence[str]) -> str:
    """The level that is classified: the one called ``class``, else the last."""
    return "class" if "class" in levels else levels[-1]


def _refuse_two_parents(name: str, level: str, folders: set[tuple[str, ...]]) -> None:
    parents: dict[str, tuple[str, ...]] = {}
    for *above, folder in sorted(folders):
        parent = parents.setdefault(folder, tuple(above))
        if parent != tuple(above):
            one, two = (printable("/".join(path)) for path in (parent, above))
            raise DataError(
                f"set {name!r}: the {level} {printable(folder)!r} lies under {one!r} and {two!r}; "
                "give each its own name"
            )


def _folders(root: Path, depth: int, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every folder down to a depth, but hidden ones, as the names that lead to it."""
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and entry.name[0] != ".":
            yield (*above, entry.name)
            if depth > 1:
                yield from _folders(entry, depth - 1, (*above, entry.name))
