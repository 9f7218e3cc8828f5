"""Open images that lie on disk: a folder, a list of paths, an npz file."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, did_you_mean
from oodscope.data.imageset import ImageSet
from oodscope.data.labels import is_number
from oodscope.data.levels import class_level, read_levels
from oodscope.data.lines import check_unique, read_list_text
from oodscope.data.sources.decoding import EXTENSIONS
from oodscope.data.sources.files import FileSource, printable
from oodscope.data.walking import images_under


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
    paths, labels, places = [], [], []
    # not splitlines(): a file name may hold what Unicode takes for a line end
    for number, line in enumerate(read_list_text(name, listing).split("\n"), start=1):
        if not line.strip():
            continue
        file, _, label = line.strip().rpartition(" ")
        place = f"{listing}, line {number}"
        if not file or not is_number(label):
            raise DataError(f"{place}: expected 'path label' with a number as label, got {line.strip()!r}")
        paths.append(file.strip())
        labels.append(int(label))
        places.append(place)
    check_unique(paths, places)
    return ImageSet(name, FileSource(Path(root) if root is not None else listing.parent, paths), labels)


def open_npz(name: str, path: Path | str, images: str = "images", labels: str = "labels") -> ImageSet:
    """Images from an npz file: uint8 ``images``, and where present integer ``labels`` and ``class_names``."""
    try:
        with np.load(path, allow_pickle=False) as content:
            if images not in content:
                raise DataError(
                    f"set {name!r}: {path} has no array {images!r}.{did_you_mean(images, content.files)} "
                    f"It holds: {', '.join(content.files)}"
                )
            pixels: NDArray[np.uint8] = content[images]
            own = content[labels] if labels in content else None
            names = [str(cls) for cls in content["class_names"]] if "class_names" in content else []
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"set {name!r}: cannot read {path}: {error}") from error
    return ImageSet.from_arrays(name, pixels, own, names)
