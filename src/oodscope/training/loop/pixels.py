"""The pixels of an image set, resized and cropped: in memory if they fit, otherwise read ahead by threads."""

import math
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.lookahead import ahead

RESIDENT_BYTES = 2 * 1024**3
"""Sets up to this size after preprocessing are kept in memory."""

_CHUNK_BYTES = 4 * 1024**2

Rows = NDArray[np.int64]


class Pixels(Protocol):
    """Serves uint8 batches ``[B, C, size, size]`` for any sequence of row lists."""

    def batches(self, orders: Iterable[Rows]) -> Iterator[Tensor]: ...


def open_pixels(images: ImageSet, preprocess: Preprocess, device: torch.device) -> Pixels:
    """In the device's memory if the set fits there, otherwise from its source, batch by batch."""
    size = len(images) * len(preprocess.mean) * preprocess.size**2
    return Resident(images, preprocess, device) if size <= RESIDENT_BYTES else Streamed(images, preprocess)


class Resident:
    """Every image read once, before the first epoch, and kept in the memory of ``device``."""

    def __init__(self, images: ImageSet, preprocess: Preprocess, device: torch.device | str = "cpu") -> None:
        shape = (len(preprocess.mean), preprocess.size, preprocess.size)
        self.pixels = torch.empty((len(images), *shape), dtype=torch.uint8)
        size = max(1, _CHUNK_BYTES // math.prod(shape))
        chunks = [np.arange(start, min(start + size, len(images))) for start in range(0, len(images), size)]
        for rows, pixels in zip(chunks, Streamed(images, preprocess).batches(chunks)):
            self.pixels[rows[0] : rows[-1] + 1] = pixels
        self.pixels = self.pixels.to(device)

    def batches(self, orders: Iterable[Rows]) -> Iterator[Tensor]:
        for rows in orders:
            yield self.pixels[torch.from_numpy(rows).to(self.pixels.device, non_blocking=True)]


class Streamed:
    """Every image read each time it is asked for; a few batches are decoded ahead, one per thread."""

    def __init__(self, images: ImageSet, preprocess: Preprocess) -> None:
        self.images = images
        # without mean and deviation the result is k / 255, from which the byte k is recovered exactly:
        # bytes take a quarter of the memory, and black is 0 when the augmentation pads
        zeros, ones = (tuple([value] * len(preprocess.mean)) for value in (0.0, 1.0))
        self.crop = preprocess.model_copy(update={"mean": zeros, "std": ones})

    def read(self, rows: Rows) -> Tensor:
        return self.crop(self.images.pictures(rows)).mul_(255.0).round_().to(torch.uint8)

    def batches(self, orders: Iterable[Rows]) -> Iterator[Tensor]:
        return ahead(orders, self.read)
