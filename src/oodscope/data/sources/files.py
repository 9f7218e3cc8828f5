"""Images in files, decoded by Pillow."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from oodscope.base.errors import DataError
from oodscope.data.filehashes import FileHashes
from oodscope.data.sources.base import ImageSource


class UnreadableImageError(DataError):
    """An image file that cannot be decoded."""


class FileSource(ImageSource):
    """Image files under one root.

    Parameters
    ----------
    root : folder that names are relative to.
    paths : files, relative to ``root``, in order.
    """

    def __init__(self, root: Path, paths: Sequence[str]) -> None:
        self.root = root
        self.paths = list(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: int) -> NDArray[np.uint8]:
        try:
            return read_image(self.root / self.paths[index])
        except UnreadableImageError as error:
            raise UnreadableImageError(
                f"{error}. Repair or remove it, or go on without it: --skip-unreadable"
            ) from error

    def name(self, index: int) -> str:
        return self.paths[index]

    def _digest_all(self) -> list[bytes]:
        with FileHashes() as hashes:
            return [hashes.digest(self.root / path) for path in self.paths]

    def unreadable(self) -> list[int]:
        """The rows that cannot be decoded; every file is tried."""
        bad = []
        for index in range(len(self)):
            try:
                self.read(index)
            except UnreadableImageError:
                bad.append(index)
        return bad


def read_image(path: Path) -> NDArray[np.uint8]:
    """The pixels of one file, ``[H, W]`` or ``[H, W, 3]``."""
    try:
        with Image.open(path) as picture:
            return pixels(picture)
    except (OSError, UnidentifiedImageError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error).replace("\n", " ")
        raise UnreadableImageError(f"unreadable image {path}: {reason}") from error


def pixels(picture: Image.Image) -> NDArray[np.uint8]:
    """The pixels of a picture: grey stays grey, everything else becomes RGB."""
    return np.asarray(picture if picture.mode == "L" else _without_depth(picture).convert("RGB"))


def _without_depth(picture: Image.Image) -> Image.Image:
    """16-bit grey scaled to 8 bits: Pillow's own conversion would clip it to white."""
    if picture.mode in ("I", "I;16", "I;16B", "I;16L"):
        return Image.fromarray((np.asarray(picture, dtype=np.float64) / 257.0).round().astype(np.uint8))
    return picture
