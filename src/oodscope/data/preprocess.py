"""From stored pixels to a network's input: one canonical, hashable description."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.hashing import fingerprint
from oodscope.data.images.base import Picture
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
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    interpolation: Literal["nearest", "bilinear", "bicubic"] = "bilinear"

    @property
    def key(self) -> str:
        """Equal for equal preprocessing: part of the address of stored activations."""
        return fingerprint(self.model_dump(mode="json"))

    def __call__(self, images: Sequence[Picture]) -> "Tensor":
        """A float32 batch ``[N, C, size, size]`` from Pillow images or uint8 arrays ``[H, W]`` or ``[H, W, C]``."""
        import torch

        channels = len(self.mean)
        batch = np.empty((len(images), self.size, self.size * channels), dtype=np.float32)
        # a whole row at once: three numbers per channel would be too short for the processor's vectors
        mean, std = (np.tile(np.array(each, dtype=np.float32), self.size) for each in (self.mean, self.std))
        for place, image in zip(batch, images):
            # one image after the other, while it lies in the processor's cache
            np.divide(self.crop(image).reshape(self.size, -1), np.float32(255.0), out=place, dtype=np.float32)
            np.subtract(place, mean, out=place)
            np.divide(place, std, out=place)
        return torch.from_numpy(batch.reshape(-1, self.size, self.size, channels)).permute(0, 3, 1, 2)

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
        left, top = (round((edge - self.size) / 2.0) for edge in picture.size)
        return picture.crop((left, top, left + self.size, top + self.size))
