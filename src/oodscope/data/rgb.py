"""One form for every picture, so that arrays and files of any kind can be compared."""

import numpy as np
from numpy.typing import NDArray

from oodscope.data.sources.base import pixel_digest

Picture = NDArray[np.uint8]


def as_rgb(image: Picture) -> Picture:
    """A picture as ``[H, W, 3]``: grey becomes three equal channels, transparency is dropped, as networks see it."""
    if image.ndim == 2:
        image = image[:, :, None]
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image[:, :, :3]


def picture_digest(image: Picture) -> bytes:
    """Equal for pictures that show the same pixels, whatever they were stored as."""
    return pixel_digest(as_rgb(image))
