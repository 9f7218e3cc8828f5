"""Images as people hold them in their hands: arrays, pictures, paths."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.base.errors import DataError
from oodscope.data.images.decoding import decode, eight_bits
from oodscope.data.imageset import ImageSet

Pixels: TypeAlias = NDArray[np.uint8]
GivenImage: TypeAlias = Pixels | Image.Image | str | PathLike[str]
GivenImages: TypeAlias = GivenImage | Sequence[GivenImage] | ImageSet


class Given:
    """Any images, one after the other, read when asked for.

    Parameters
    ----------
    images : one image or many: a uint8 array (``[H, W]`` or ``[H, W, C]`` for one, ``[N, H, W, C]`` for many), a
        Pillow picture, a path, a list of these, or an ``ImageSet``.
    """

    def __init__(self, images: GivenImages) -> None:
        self.images: Any = images
        if isinstance(images, (str, PathLike, Image.Image)) or (isinstance(images, np.ndarray) and images.ndim < 4):
            self.images = [images]

    def __len__(self) -> int:
        return len(self.images)

    def read(self, rows: Sequence[int]) -> list[Pixels]:
        """The pixels of these images."""
        if isinstance(self.images, ImageSet):
            return self.images.images(rows)
        return [self._one(row) for row in rows]

    def _one(self, row: int) -> Pixels:
        image = self.images[row]
        if isinstance(image, (str, PathLike)):
            return np.asarray(decode(Path(image), str(image)))
        if isinstance(image, Image.Image):
            return np.asarray(eight_bits(image))
        if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim in (2, 3):
            return image
        kind = f"{image.dtype} array of shape {list(image.shape)}" if hasattr(image, "shape") else type(image).__name__
        raise DataError(
            f"image {row} is a {kind}; needed: a uint8 array [H, W] or [H, W, C], a Pillow picture or a path "
            "(float tensors [N, C, H, W] in 0..1 as one tensor)"
        )
