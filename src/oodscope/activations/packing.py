"""Packing: the images of a set decoded once, and published as a pack."""

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np

from oodscope.activations.feeding import crops
from oodscope.activations.store.packs import SHARD, VARIABLE, Pack, pack_root
from oodscope.base.errors import StorageError
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress


def pack_images(images: ImageSet, preprocess: Preprocess, progress: Progress = SILENT) -> int:
    """Decode what is not packed yet and publish it; how many images that were.

    Killed, it loses at most one file; several processes may pack at once, and the first to publish a file wins.
    """
    pack = Pack(images.source, preprocess)
    lacking = pack.missing(np.unique(images.rows))
    if not len(lacking):
        return 0
    files = np.split(lacking, np.flatnonzero(np.diff(lacking // SHARD)) + 1)
    parent = ImageSet(images.name, images.source)
    with (
        progress.stage(f"pack {images.name}", len(lacking)) as advance,
        closing(crops(preprocess, parent, files)) as decoded,
    ):
        for rows, pixels in zip(files, decoded):
            pack.column.publish(rows, pixels.numpy(), {"set": images.name}, SHARD)
            advance(len(rows))
    return len(lacking)


def pack_bytes(count: int, preprocess: Preprocess) -> int:
    """Of so many images."""
    return count * preprocess.size**2 * len(preprocess.mean)


def refuse_full_disk(needed: int) -> None:
    """One line where the disk of the packs has less space than is needed."""
    root = pack_root()
    if not isinstance(root, Path):
        return
    there = next(folder for folder in (root, *root.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    if needed > free:
        raise StorageError(
            f"{root}: {needed / 1e9:,.1f} GB are needed and {free / 1e9:,.1f} GB free; "
            f"set {VARIABLE} to a folder or URL with more space"
        )
