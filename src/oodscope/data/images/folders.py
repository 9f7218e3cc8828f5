"""Open images that lie on disk: a folder, a list of paths, an npz file."""

import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, did_you_mean
from oodscope.data.images.decoding import EXTENSIONS
from oodscope.data.images.files import FileSource, printable
from oodscope.data.images.labels import check_unique, is_number, read_list_text
from oodscope.data.imageset import ImageSet


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


def images_under(root: Path, above: frozenset[tuple[int, int]] = frozenset(), prefix: str = "") -> Iterator[str]:
    """Paths relative to ``root``, with ``/`` between the parts.

    Links to folders are followed, except back to a folder that they lie in. A link that leads nowhere counts:
    whoever reads it says so, where leaving it out would lose an image without a word.
    """
    try:
        status = root.stat()
        entries = list(os.scandir(root))
    except OSError as error:
        raise DataError(f"cannot look into {root}: {error.strerror}") from error
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    for entry in entries:
        if entry.is_dir():
            yield from images_under(Path(entry.path), above | {here}, f"{prefix}{entry.name}/")
        elif os.path.splitext(entry.name)[1].lower() in EXTENSIONS and (entry.is_file() or entry.is_symlink()):  # noqa: PTH122
            yield f"{prefix}{entry.name}"


def open_folder(name: str, path: Path | str, levels: Sequence[str] = ("class",)) -> ImageSet:
    """Images under a folder, in sorted order; its subfolders, if any, are the classes.

    Parameters
    ----------
    name : of the set.
    path : of the folder.
    levels : what the nested folders are, from the outermost: ``("superclass", "class")`` for
        ``flowers/rose/1.png``. The one called ``class``, else the last, is the class; the others become levels of the
        hierarchy.
    """
    root = Path(path)
    if not root.is_dir():
        raise DataError(f"set {name!r}: {root} is not a folder")
    found = sorted(images_under(root))
    if not found:
        raise DataError(f"set {name!r}: no image under {root} (looked for {', '.join(sorted(EXTENSIONS))})")
    if len(levels) == 1 and not any("/" in file for file in found):
        return ImageSet(name, FileSource(root, found))
    columns = read_levels(name, root, found, levels)
    nested = columns.pop(class_level(levels))
    classes = sorted(set(nested))
    code = {cls: number for number, cls in enumerate(classes)}
    return ImageSet(
        name,
        FileSource(root, found),
        [code[cls] for cls in nested],
        [printable(cls) for cls in classes],
        hierarchy={level: [printable(folder) for folder in column] for level, column in columns.items()},
    )


def open_list(name: str, path: Path | str, root: Path | str | None = None) -> ImageSet:
    """Images named by a text file of lines ``path label``; a path may contain spaces, a label is an integer.

    Paths are relative to ``root``, by default the folder of the list. The label -1 marks an image
    without a class, as the lists of OpenOOD do for outliers.
    """
    listing = Path(path)
    # not splitlines(): a file name may hold what Unicode takes for a line end
    lines = [line.strip() for line in read_list_text(name, listing).split("\n")]
    parts = [line.rpartition(" ") for line in lines if line]
    paths = [file.rstrip() for file, _, _ in parts]
    numbers = [label for _, _, label in parts]
    if not all(paths) or not all(map(is_number, numbers)) or len(set(paths)) < len(paths):
        _refuse_line(listing, lines)
    labels = list(map(int, numbers))
    return ImageSet(name, FileSource(Path(root) if root is not None else listing.parent, paths), labels)


def _refuse_line(listing: Path, lines: Sequence[str]) -> NoReturn:
    """Say which line of a list is wrong; only then are their numbers worth counting."""
    paths, places = [], []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        file, _, label = line.rpartition(" ")
        place = f"{listing}, line {number}"
        if not file or not is_number(label):
            raise DataError(f"{place}: expected 'path label' with a number as label, got {line!r}")
        paths.append(file.rstrip())
        places.append(place)
    check_unique(paths, places)
    raise AssertionError("some line is wrong")


def open_npz(name: str, path: Path | str, images: str = "images", labels: str = "labels") -> ImageSet:
    """Images from an npz file: uint8 ``images``, and where present integer ``labels`` and ``class_names``."""
    try:
        if Path(path).exists() and not Path(path).is_file():  # a pipe would be waited for
            raise DataError(f"set {name!r}: cannot read {path}: not a file")
        # mapped, because a single array is refused and need not be read for that
        opened = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(opened, np.ndarray):
            raise DataError(f"set {name!r}: {path} is one array, not an npz file with {images!r} and {labels!r}")
        with opened as content:
            if images not in content:
                raise DataError(
                    f"set {name!r}: {path} has no array {images!r}.{did_you_mean(images, content.files)} "
                    f"It holds: {', '.join(content.files)}"
                )
            pixels: NDArray[np.uint8] = content[images]
            own = content[labels] if labels in content else None
            names = [str(cls) for cls in content["class_names"]] if "class_names" in content else []
    except (OSError, OverflowError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        # numpy advises to unpickle what it cannot read, which would run code of whoever wrote it
        reason = "no npz file, or one of pickled objects, which are not read" if "pickle" in str(error) else error
        raise DataError(f"set {name!r}: cannot read {path}: {reason}") from error
    except MemoryError as error:
        raise DataError(f"set {name!r}: {path} claims more pixels than fit into memory") from error
    return ImageSet.from_arrays(name, pixels, own, names)
