"""From an image file of any kind to a Pillow image of eight bits, in grey or colour."""

import os
import warnings
from collections.abc import Callable
from io import BytesIO
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from oodscope.base.errors import DataError
from oodscope.data.images.base import pixel_digest

Picture = NDArray[np.uint8]


def as_rgb(image: Picture) -> Picture:
    """A picture as ``[H, W, 3]``: grey becomes three equal channels, transparency is dropped, as networks see it."""
    if image.ndim == 2:
        image = image[:, :, None]
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image[:, :, :3]


def picture_digest(image: Picture) -> bytes:
    """Equal for pictures that show the same pixels, whatever they were stored as."""
    return pixel_digest(as_rgb(image))


EXTENSIONS = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp", ".gif"}
"""Of the files that count as images, in lower case; the upper case counts too."""


FORMATS = ("JPEG", "PNG", "BMP", "PPM", "TIFF", "WEBP", "GIF")
"""Pillow's decoders for these files, and no other: some of the rest start programs (EPS is Ghostscript's) or are rarely
read by anybody, and a file's ending does not say what is in it."""

MOST_BYTES, MOST_PIXELS = 512 * 2**20, 100_000_000
"""Of one encoded image; both are known before a pixel is decoded."""

MOST_STRETCHED = 1000
"""Long side over short side: a line of pixels is a small file, and gigabytes once its short side is resized."""


VOLUMES = (".nii", ".nii.gz")
VOLUME = (
    "a volume, not a picture; run your network over it and judge its features and logits: oodscope evaluate "
    "--activations"
)
"""What is said of files of medical images in three dimensions."""


class UnreadableImageError(DataError):
    """An image that cannot be decoded."""


def decode(file: Path | BinaryIO, where: str | Callable[[], str]) -> Image.Image:
    """The picture in a file, as mode ``L`` or ``RGB``; whatever is wrong with it becomes one line.

    The published benchmarks read their images with Pillow and ``convert("RGB")``, and so does this, to the pixel:
    transparency is dropped and not blended with any background, the orientation that a camera wrote into the
    file is not applied, an animation gives its first frame. Pillow's ``draft`` mode would decode a large JPEG
    faster, straight to a smaller size, but to other pixels: it is not used. One thing is done otherwise: 16-bit
    grey is scaled to 8 bits where Pillow would clip it to white.

    Parameters
    ----------
    file : a path, or a stream of the encoded bytes.
    where : what messages call it, or what gives its name: making one costs more than some images.
    """
    try:
        with open_picture(_content(file) if isinstance(file, Path) else file) as picture:
            picture.load()
            return eight_bits(picture)
    except Exception as error:  # on damaged files Pillow's decoders raise whatever they stumble over
        reason = "no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
        name = where if isinstance(where, str) else where()
        if isinstance(error, UnidentifiedImageError) and not isinstance(file, Path):
            reason = "cannot identify its format"  # Pillow adds the address of the stream in memory
        reason = VOLUME if name.endswith(VOLUMES) and reason != "no such file" else reason
        raise UnreadableImageError(f"unreadable image {name}: {reason or type(error).__name__}") from error


class _Content(BytesIO):
    """The bytes of a file, which messages call by its path."""

    def __init__(self, path: Path, content: bytes) -> None:
        super().__init__(content)
        self._path = path

    def __repr__(self) -> str:
        return repr(str(self._path))


def _content(path: Path) -> _Content:
    # one read of all: Pillow would ask the system for each piece
    if not path.is_file() and path.exists():  # a pipe would be waited for, a device never ends
        raise ValueError("not a file")
    with path.open("rb", buffering=0) as stream:
        _check_size(os.fstat(stream.fileno()).st_size)
        return _Content(path, stream.read())


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise ValueError(f"{size:,} bytes; at most {MOST_BYTES:,} are read")


def open_picture(file: BinaryIO) -> Image.Image:
    """The head of an image file, its format and size known and in bounds; pixels are decoded by its ``load``."""
    here = file.tell()
    _check_size(file.seek(0, SEEK_END) - here)
    file.seek(here)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the bound below is ours
        picture = Image.open(file, formats=FORMATS)
    if picture.width * picture.height > MOST_PIXELS:
        picture.close()
        raise ValueError(f"{picture.width} x {picture.height} pixels; at most {MOST_PIXELS:,} are read")
    if max(picture.size) > MOST_STRETCHED * min(picture.size):
        picture.close()
        raise ValueError(
            f"{picture.width} x {picture.height} pixels; no side may be {MOST_STRETCHED:,} times the other"
        )
    return picture


def eight_bits(picture: Image.Image) -> Image.Image:
    """The same picture in mode ``L`` or ``RGB``; a ``ValueError`` where its values have no known range."""
    if picture.mode in ("L", "RGB"):
        # as it is: convert() to the same mode would copy it
        return picture
    if picture.mode == "F":
        raise ValueError("its pixels are floating-point numbers of unknown range; save it with 8 bits")
    if picture.mode.startswith("I"):
        values = np.asarray(picture, dtype=np.float64)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError("its pixels have more than 16 bits; save it with 8 bits")
        picture = Image.fromarray((values / 257.0).round().astype(np.uint8))
    if picture.mode == "P" and "transparency" in picture.info:
        # the same colours, without Pillow's advice on standard error
        picture = picture.convert("RGBA")
    return picture.convert("RGB")
