"""From stored pixels to a network's input: one canonical, hashable description."""

import math
from collections.abc import Sequence
from functools import lru_cache
from mmap import mmap
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, model_validator

from oodscope.base.config import StrictModel
from oodscope.base.hashing import fingerprint
from oodscope.data.images.base import ImageSource, Picture
from oodscope.data.images.reframed import Presized

if TYPE_CHECKING:
    from torch import Tensor

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


LARGEST = 8192
"""Side in pixels; one image of more would fill the memory of a machine."""


class Preprocess(StrictModel):
    """Resize the short side, crop the centre, scale to [0, 1], normalise.

    The resize is Pillow's (antialiased), because the published benchmarks use it and other filters
    move AUROC by a point.

    Parameters
    ----------
    size : side of the square that the network sees.
    resize : length of the short side before the crop; by default ``size``.
    mean, std : per channel, of pixels in [0, 1]; their number is the number of channels.
    interpolation : Pillow's filter.

    Examples
    --------
    >>> oods.Preprocess(size=8)([np.zeros((32, 32, 3), np.uint8)]).shape
    torch.Size([1, 3, 8, 8])
    """

    size: int = Field(gt=0, le=LARGEST)
    resize: int | None = Field(default=None, gt=0, le=LARGEST)
    mean: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = (0.5, 0.5, 0.5)
    std: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...] = (0.5, 0.5, 0.5)
    interpolation: Literal["nearest", "bilinear", "bicubic"] = "bilinear"

    @model_validator(mode="after")
    def _check_channels(self) -> Self:
        if not self.mean or len(self.std) != len(self.mean):
            raise ValueError(f"mean and std need one number per channel each, not {len(self.mean)} and {len(self.std)}")
        return self

    @property
    def key(self) -> str:
        """Equal for equal preprocessing: part of the address of stored activations."""
        return fingerprint(self.model_dump(mode="json"))

    @property
    def crop_key(self) -> str:
        """Equal where the same pixels are cut from an image, however they are normalised afterwards."""
        return fingerprint([self.size, self.resize or self.size, self.interpolation, len(self.mean)])

    def __call__(self, images: Sequence[Picture]) -> "Tensor":
        """A float32 batch ``[N, C, size, size]`` from Pillow images or uint8 arrays ``[H, W]`` or ``[H, W, C]``."""
        crops = np.empty((len(images), self.size, self.size, len(self.mean)), dtype=np.uint8)
        self.fill(crops, images)
        return self.normalise(_tensor(crops))

    def fill(self, crops: NDArray[np.uint8], images: Sequence[Picture]) -> None:
        """Write the pixels that the network sees, not yet normalised, into ``crops`` ``[N, size, size, C]``."""
        for place, image in zip(crops, images, strict=True):
            place[...] = self.crop(image)

    def normalise(self, crops: "Tensor") -> "Tensor":
        """A float32 batch ``[N, C, size, size]`` of ``crops``, on their device, channels last in memory.

        Divisors are tensors, because CUDA multiplies by the reciprocal of a plain number: so every device divides, and
        all give the same bits.
        """
        most, mean, std = _numbers(self.mean, self.std, str(crops.device))
        return crops.float().div_(most).sub_(mean).div_(std).permute(0, 3, 1, 2)

    def crop(self, image: Picture) -> NDArray[np.uint8]:
        """The pixels ``[size, size, C]`` that the network sees, not yet normalised."""
        side = self.size if isinstance(image, Presized) else self.resize or self.size
        if isinstance(image, np.ndarray):
            channels = 1 if image.ndim == 2 else image.shape[2]
            if image.shape[:2] == (self.size, self.size) and side == self.size and channels == len(self.mean):
                return image.reshape(self.size, self.size, channels)
            image = Image.fromarray(image.squeeze(2) if channels == 1 and image.ndim == 3 else image)
        return np.asarray(self._cropped(image, side)).reshape(self.size, self.size, len(self.mean))

    def _cropped(self, picture: Image.Image, side: int) -> Image.Image:
        mode = "L" if len(self.mean) == 1 else "RGB"
        if picture.mode != mode:
            picture = picture.convert(mode)
        if min(picture.size) != side:
            short = min(picture.size)
            # truncated, not rounded, to agree with torchvision's Resize to the pixel
            width, height = (int(side * edge / short) for edge in picture.size)
            picture = picture.resize((width, height), _FILTERS[self.interpolation])
        if picture.size == (self.size, self.size):
            return picture
        left, top = (round((edge - self.size) / 2.0) for edge in picture.size)
        return picture.crop((left, top, left + self.size, top + self.size))


@lru_cache(maxsize=64)
def _numbers(mean: tuple[float, ...], std: tuple[float, ...], device: str) -> "Tensor":
    """Divisors and mean on a device: sent once, because a copy from ordinary memory waits for all work before it."""
    import torch

    return torch.tensor([[255.0] * len(mean), mean, std], dtype=torch.float32).to(device)


def _tensor(crops: NDArray[np.uint8]) -> "Tensor":
    import torch

    return torch.from_numpy(crops)


def fill_shared(memory: mmap, start: int, preprocess: Preprocess, source: ImageSource) -> float:
    """Write what a network sees of all images of ``source`` into shared memory, from byte ``start`` on; the seconds."""
    began = perf_counter()
    shape = (len(source), preprocess.size, preprocess.size, len(preprocess.mean))
    crops = np.frombuffer(memory, dtype=np.uint8, count=math.prod(shape), offset=start).reshape(shape)
    preprocess.fill(crops, source.pictures(np.arange(len(source))))
    return perf_counter() - began
