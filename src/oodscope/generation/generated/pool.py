"""Pool: images from which a generated set is chosen."""

from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.generation.gan import frame
from oodscope.training.loop.pixels import Resident


@dataclass(frozen=True)
class Pool:
    """Images as they would be stored, before any is chosen.

    Parameters
    ----------
    pixels : uint8 ``[N, C, H, W]`` on the CPU. What is measured is what will be read back, so rounding comes first.
    labels : ``[N]`` class that each was made from; -1 where there is none.
    rows : ``[N]`` the image that each was made from, where it was one; -1 otherwise.
    """

    pixels: Tensor
    labels: Tensor
    rows: Tensor

    def __post_init__(self) -> None:
        if self.pixels.dtype != torch.uint8 or self.pixels.ndim != 4:
            raise DataError(f"a pool holds uint8 images [N, C, H, W], not {self.pixels.dtype} {self.pixels.shape}")
        if not len(self.pixels) == len(self.labels) == len(self.rows):
            raise DataError(f"a pool of {len(self.pixels)} images needs as many labels and rows")

    @classmethod
    def of(cls, images: Tensor, labels: Tensor, rows: Tensor | None = None) -> "Pool":
        """From uint8 images, or from float ones in [0, 1] that are rounded to 256 levels; on any device."""
        if images.is_floating_point():
            images = images.detach().float().mul(255).round().clamp(0, 255).to(torch.uint8)
        made_from = torch.full((len(images),), UNLABELLED) if rows is None else rows
        return cls(images.cpu(), labels.cpu(), made_from.cpu())

    def take(self, rows: Tensor) -> "Pool":
        """Some of its images."""
        return Pool(self.pixels[rows], self.labels[rows], self.rows[rows])

    def __len__(self) -> int:
        return len(self.pixels)


def frame_of(images: ImageSet) -> Preprocess:
    """Side and channels in which images like these are generated, stored and judged."""
    side, channels = frame.frame_of(images, None)
    return Preprocess(size=side, mean=(0.5,) * channels, std=(0.5,) * channels)


def read_pool(images: ImageSet, frame: Preprocess) -> Pool:
    """All images of a set in a frame."""
    return Pool.of(Resident(images, frame).pixels, torch.from_numpy(images.labels), torch.arange(len(images)))
