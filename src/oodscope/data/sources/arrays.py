"""Images that already lie in memory, or in a memory map."""

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.data.sources.base import ImageSource, pixel_digest


class ArraySource(ImageSource):
    """A uint8 array ``[N, H, W]`` or ``[N, H, W, C]`` with one, three or four channels."""

    def __init__(self, label: str, images: NDArray[np.uint8]) -> None:
        if images.dtype != np.uint8:
            raise DataError(f"set {label!r}: images must be uint8 (0..255), not {images.dtype}")
        if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] not in (1, 3, 4)):
            raise DataError(
                f"set {label!r}: images must have shape [N, H, W] or [N, H, W, C], not {list(images.shape)}"
            )
        self.label = label
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def read(self, index: int) -> NDArray[np.uint8]:
        image: NDArray[np.uint8] = self.images[index]
        return image

    def name(self, index: int) -> str:
        return f"{self.label}/{index}"

    def _digest_all(self) -> list[bytes]:
        return [pixel_digest(image) for image in self.images]
