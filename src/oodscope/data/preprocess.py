"""From stored pixels to a network's input: one canonical, hashable description."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.hashing import fingerprint

if TYPE_CHECKING:
    from torch import Tensor

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


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
    """

    size: int = Field(gt=0)
    resize: int | None = Field(default=None, gt=0)
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    interpolation: Literal["nearest", "bilinear", "bicubic"] = "bilinear"

    @property
    def key(self) -> str:
        """Equal for equal preprocessing: part of the address of stored activations."""
        return fingerprint(self.model_dump(mode="json"))

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> "Tensor":
        """A float32 batch ``[N, C, size, size]`` from uint8 images ``[H, W]`` or ``[H, W, C]``."""
        import torch

        pixels = torch.from_numpy(np.stack([self.crop(image) for image in images]))
        batch = pixels.permute(0, 3, 1, 2).to(torch.float32).div_(255.0)
        shape = (1, -1, 1, 1)
        return batch.sub_(torch.tensor(self.mean).view(shape)).div_(torch.tensor(self.std).view(shape))

    def crop(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The pixels ``[size, size, C]`` that the network sees, not yet normalised."""
        channels = 1 if image.ndim == 2 else image.shape[2]
        side = self.resize or self.size
        if image.shape[:2] == (self.size, self.size) and side == self.size and channels == len(self.mean):
            return image.reshape(self.size, self.size, channels)
        picture = Image.fromarray(image.squeeze(2) if channels == 1 and image.ndim == 3 else image)
        picture = picture.convert("L" if len(self.mean) == 1 else "RGB")
        if min(picture.size) != side:
            short = min(picture.size)
            # truncated, not rounded, to agree with torchvision's Resize to the pixel
            width, height = (int(side * edge / short) for edge in picture.size)
            picture = picture.resize((width, height), _FILTERS[self.interpolation])
        left, top = (round((edge - self.size) / 2.0) for edge in picture.size)
        picture = picture.crop((left, top, left + self.size, top + self.size))
        return np.asarray(picture).reshape(self.size, self.size, len(self.mean))
