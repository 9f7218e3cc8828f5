"""Images whose frame is not the usual one: cropped before anything else, or exempt from the crop."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from oodscope.data.images.base import ImageSource


class Presized(np.ndarray):
    """Pixels that already have the size a network wants: ``Preprocess`` leaves out its larger resize and the crop."""


class PresizedSource(ImageSource):
    """The images of ``parent``, marked as already cropped.

    ImageNet-C was published after resize and crop. Resizing its 224 pixels to 256 and cropping again would
    show the network a zoomed-in copy, and OpenOOD does not do it.
    """

    def __init__(self, parent: ImageSource) -> None:
        self.parent = parent

    def __len__(self) -> int:
        return len(self.parent)

    def read(self, index: int) -> NDArray[np.uint8]:
        return self.parent.read(index).view(Presized)

    def excerpt(self, rows: NDArray[np.int64]) -> "PresizedSource | None":
        parent = self.parent.excerpt(rows)
        return None if parent is None else PresizedSource(parent)

    def name(self, index: int) -> str:
        return self.parent.name(index)

    def unreadable(self) -> list[int]:
        return self.parent.unreadable()

    def _digest_all(self) -> list[bytes]:
        return _marked(self.parent.digests, "presized")


class CroppedSource(ImageSource):
    """The central square of ``side`` pixels of each image of ``parent``; smaller images stay whole on that edge."""

    def __init__(self, parent: ImageSource, side: int) -> None:
        self.parent = parent
        self.side = side

    def __len__(self) -> int:
        return len(self.parent)

    def read(self, index: int) -> NDArray[np.uint8]:
        image = self.parent.read(index)
        top, left = (max(0, round((edge - self.side) / 2.0)) for edge in image.shape[:2])
        return np.ascontiguousarray(image[top : top + self.side, left : left + self.side])

    def excerpt(self, rows: NDArray[np.int64]) -> "CroppedSource | None":
        parent = self.parent.excerpt(rows)
        return None if parent is None else CroppedSource(parent, self.side)

    def name(self, index: int) -> str:
        return self.parent.name(index)

    def unreadable(self) -> list[int]:
        return self.parent.unreadable()

    def _digest_all(self) -> list[bytes]:
        return _marked(self.parent.digests, f"crop {self.side}")


def _marked(digests: list[bytes], mark: str) -> list[bytes]:
    # the network sees other pixels than the file's: stored activations must not be shared
    return [hashlib.blake2b(digest + mark.encode(), digest_size=16).digest() for digest in digests]
