"""The source of an ImageSet's pixels."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oodscope.base.hashing import fingerprint


class ImageSource(ABC):
    """A fixed, ordered collection of images that can be read one by one and in any order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, index: int) -> NDArray[np.uint8]:
        """The pixels of one image, ``[H, W]`` or ``[H, W, C]``."""

    def read_many(self, indices: Sequence[int]) -> list[NDArray[np.uint8]]:
        """The pixels of some images; a source that computes them may do so for all at once."""
        return [self.read(index) for index in indices]

    @abstractmethod
    def name(self, index: int) -> str:
        """What a person calls this image: a relative path, or set name and number."""

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


def pixel_digest(image: NDArray[np.uint8]) -> bytes:
    """Digest of decoded pixels, shape included."""
    header = "x".join(str(edge) for edge in image.shape).encode()
    return hashlib.blake2b(header + np.ascontiguousarray(image).tobytes(), digest_size=16).digest()
