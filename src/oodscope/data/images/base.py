"""The source of an ImageSet's pixels."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.base.hashing import fingerprint

Picture = NDArray[np.uint8] | Image.Image
"""One image on its way to a network: pixels ``[H, W]`` or ``[H, W, C]``, or a decoded Pillow image."""


class ImageSource(ABC):
    """A fixed, ordered collection of images that can be read one by one, in any order and by several threads."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, index: int) -> NDArray[np.uint8]:
        """The pixels of one image, ``[H, W]`` or ``[H, W, C]``."""

    def picture(self, index: int) -> Picture:
        """What ``read`` gives, in the form that costs this source the least.

        Decoders make Pillow images and Pillow resizes them: an array in between is two copies for nothing.
        """
        return self.read(index)

    def read_many(self, indices: Sequence[int]) -> list[NDArray[np.uint8]]:
        """The pixels of some images; a source that computes them may do so for all at once."""
        return [self.read(index) for index in indices]

    def pictures(self, indices: NDArray[np.int64]) -> Sequence[Picture]:
        """Some images on their way to a network, each decoded when it is taken."""
        return Pictures(self, indices)

    def excerpt(self, rows: NDArray[np.int64]) -> "ImageSource | None":
        """A source of these images only that another process can read from; ``None`` where images lie in this one."""
        return None

    @abstractmethod
    def name(self, index: int) -> str:
        """What a person calls this image: a relative path, or set name and number."""

    def unreadable(self) -> list[int]:
        """The rows that cannot be decoded; none where pixels lie open."""
        return []

    @abstractmethod
    def _digest_all(self) -> list[bytes]:
        """A content digest of every image, in order."""

    @cached_property
    def digests(self) -> list[bytes]:
        """A content digest of every image, computed once."""
        return self._digest_all()

    @cached_property
    def key(self) -> str:
        """Fingerprint of all images in order: the data's part of the address of stored activations."""
        return fingerprint(b"".join(self.digests))


class Pictures(Sequence[Picture]):
    """Some images of a source, each decoded when it is taken, and again if it is taken again."""

    def __init__(self, source: ImageSource, rows: NDArray[np.int64]) -> None:
        self.source = source
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, position: int) -> Picture: ...

    @overload
    def __getitem__(self, position: slice) -> "Pictures": ...

    def __getitem__(self, position: int | slice) -> "Picture | Pictures":
        if isinstance(position, slice):
            return Pictures(self.source, self.rows[position])
        return self.source.picture(int(self.rows[position]))


def pixel_digest(image: NDArray[np.uint8]) -> bytes:
    """Digest of decoded pixels, shape included."""
    header = "x".join(str(edge) for edge in image.shape).encode()
    return hashlib.blake2b(header + np.ascontiguousarray(image).tobytes(), digest_size=16).digest()
