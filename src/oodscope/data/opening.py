"""Open images that lie on disk: a folder, a list of paths, an npz file."""

import os
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, did_you_mean
from oodscope.data.imageset import ImageSet
from oodscope.data.sources import FileSource

EXTENSIONS = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp", ".gif"}


def open_folder(name: str, path: Path | str) -> ImageSet:
    """Images under a folder, in sorted order; its subfolders, if any, are the classes."""
    root = Path(path)
    if not root.is_dir():
        raise DataError(f"set {name!r}: {root} is not a folder")
    found = sorted(file.relative_to(root).as_posix() for file in image_files(root))
    if not found:
        raise DataError(f"set {name!r}: no image under {root} (looked for {', '.join(sorted(EXTENSIONS))})")
    nested = [file.partition("/")[0] if "/" in file else "" for file in found]
    if not any(nested):
        return ImageSet(name, FileSource(root, found))
    loose = nested.count("")
    if loose:
        raise DataError(
            f"set {name!r}: {root} holds class folders and {loose} images beside them; move the images into a class"
        )
    classes = sorted(set(nested))
    code = {cls: number for number, cls in enumerate(classes)}
    return ImageSet(name, FileSource(root, found), [code[cls] for cls in nested], classes)


def open_list(name: str, path: Path | str, root: Path | str | None = None) -> ImageSet:
    """Images named by a text file of lines ``path label``; a path may contain spaces, a label is an integer.

    Paths are relative to ``root``, by default the folder of the list. The label -1 marks an image
    without a class, as the lists of OpenOOD do for outliers.
    """
    listing = Path(path)
    try:
        lines = listing.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"set {name!r}: cannot read the list {listing}: {error.strerror}") from error
    paths, labels = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        file, _, label = line.strip().rpartition(" ")
        try:
            labels.append(int(label))
        except ValueError:
            raise DataError(f"{listing}, line {number}: expected 'path label', got {line.strip()!r}") from None
        if not file:
            raise DataError(f"{listing}, line {number}: expected 'path label', got {line.strip()!r}")
        paths.append(file.strip())
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


def image_files(root: Path) -> list[Path]:
    """Every image file below ``root``; links to folders are followed, but no folder twice."""
    visited: set[str] = set()
    files: list[Path] = []
    for folder, below, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited:
            below.clear()
            continue
        visited.add(real)
        files.extend(Path(folder) / name for name in names if Path(name).suffix.lower() in EXTENSIONS)
    return files
