"""Pool: images from which a generated set is chosen."""

from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.training.pixels import Resident

_SIDE = 32


@dataclass(frozen=True)
class Pool:
    """Images as they would be stored, before any is chosen.

    Parameters
    ----------
    pixels : uint8 ``[N, C, H, W]`` on the CPU. What is measured is what will be read back, so rounding comes first.
    labels : ``[N]`` class that each was made from.
    """

    pixels: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.pixels.dtype != torch.uint8 or self.pixels.ndim != 4 or len(self.labels) != len(self.pixels):
            raise DataError(f"a pool holds uint8 images and a label each, not {self.pixels.dtype} {self.labels.shape}")

    @classmethod
    def of(cls, images: Tensor, labels: Tensor) -> "Pool":
        """From float images in [0, 1] on any device, rounded to 256 levels."""
        pixels = images.detach().float().mul(255).round().clamp(0, 255).to(torch.uint8)
        return cls(pixels.cpu(), labels.cpu())

    def __len__(self) -> int:
        return len(self.pixels)


def frame_of(images: ImageSet) -> Preprocess:
    """Side and channels in which images like these are generated and judged: their own where they are small squares."""
    first = images.images([0])[0]
    side = first.shape[0] if first.shape[0] == first.shape[1] <= 64 else _SIDE
    channels = 1 if first.ndim == 2 or first.shape[2] == 1 else 3
    return Preprocess(size=side, mean=(0.5,) * channels, std=(0.5,) * channels)


def read_pool(images: ImageSet, frame: Preprocess) -> Pool:
    """All images of a set in a frame."""
    return Pool(Resident(images, frame).pixels, torch.from_numpy(images.labels))
