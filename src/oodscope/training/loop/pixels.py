"""The pixels of an image set, resized and cropped: in memory if they fit, otherwise read ahead by threads."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from oodscope.activations.store.packs import find_pack
from oodscope.data.images.arrays import ArraySource
from oodscope.data.images.base import Picture
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.lookahead import ahead

RESIDENT_BYTES = 2 * 1024**3
"""Sets up to this size after preprocessing are kept in memory."""

_CHUNK_BYTES = 4 * 1024**2

Rows = NDArray[np.int64]

Cut = Callable[[Image.Image, int], NDArray[np.uint8]]
"""What the network sees of the picture of a row, ``[size, size, C]``."""


class Pixels(Protocol):
    """Serves uint8 batches ``[B, C, size, size]`` for any sequence of row lists.

    ``cut`` takes the place of resize and centre crop; only what reads whole pictures can do that (``whole``).
    """

    whole: bool

    def batches(self, orders: Iterable[Rows], cut: Cut | None = None) -> Iterator[Tensor]: ...


def open_pixels(images: ImageSet, preprocess: Preprocess, device: torch.device, *, whole: bool = False) -> Pixels:
    """In the device's memory if the set fits there, otherwise from its source, batch by batch.

    Parameters
    ----------
    whole : whether pictures are to be cut anew each time; those of the network's size need not be read for that.
    """
    size = len(images) * len(preprocess.mean) * preprocess.size**2
    if size <= RESIDENT_BYTES and not (whole and _is_larger(images, preprocess)):
        return Resident(images, preprocess, device)
    return Streamed(images, preprocess)


def _is_larger(images: ImageSet, preprocess: Preprocess) -> bool:
    source = images.source
    side = preprocess.size
    return not (isinstance(source, ArraySource) and source.images.shape[1:3] == (side, side))


class Resident:
    """Every image read once, before the first epoch, and kept in the memory of ``device``."""

    whole = False

    def __init__(self, images: ImageSet, preprocess: Preprocess, device: torch.device | str = "cpu") -> None:
        shape = (len(preprocess.mean), preprocess.size, preprocess.size)
        self.pixels = torch.empty((len(images), *shape), dtype=torch.uint8)
        size = max(1, _CHUNK_BYTES // math.prod(shape))
        chunks = [np.arange(start, min(start + size, len(images))) for start in range(0, len(images), size)]
        for rows, pixels in zip(chunks, Streamed(images, preprocess).batches(chunks)):
            self.pixels[rows[0] : rows[-1] + 1] = pixels
        self.pixels = self.pixels.to(device)

    def batches(self, orders: Iterable[Rows], cut: Cut | None = None) -> Iterator[Tensor]:
        assert cut is None, "pictures in memory are cut already"
        for rows in orders:
            yield self.pixels[torch.from_numpy(rows).to(self.pixels.device, non_blocking=True)]


class Streamed:
    """Every image read each time it is asked for; a few batches are decoded ahead, one per thread."""

    whole = True

    def __init__(self, images: ImageSet, preprocess: Preprocess) -> None:
        self.images = images
        # without mean and deviation the result is k / 255, from which the byte k is recovered exactly:
        # bytes take a quarter of the memory, and black is 0 when the augmentation pads
        zeros, ones = (tuple([value] * len(preprocess.mean)) for value in (0.0, 1.0))
        self.crop = preprocess.model_copy(update={"mean": zeros, "std": ones})
        self.pack = find_pack(images, preprocess, images.rows)

    def read(self, rows: Rows, cut: Cut | None = None) -> Tensor:
        if cut is None and self.pack is not None:
            return self.pack.read(self.images.rows[rows]).permute(0, 3, 1, 2)
        pictures = self.images.pictures(rows)
        if cut is None:
            return self.crop(pictures).mul_(255.0).round_().to(torch.uint8)
        mode = "L" if len(self.crop.mean) == 1 else "RGB"
        parts = [cut(_in_mode(picture, mode), int(row)) for picture, row in zip(pictures, rows)]
        return torch.from_numpy(np.stack(parts)).permute(0, 3, 1, 2)

    def batches(self, orders: Iterable[Rows], cut: Cut | None = None) -> Iterator[Tensor]:
        return ahead(orders, partial(self.read, cut=cut))


def _in_mode(picture: Picture, mode: str) -> Image.Image:
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(np.asarray(picture).squeeze())
    return image if image.mode == mode else image.convert(mode)
