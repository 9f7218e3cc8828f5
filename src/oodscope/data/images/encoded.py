"""Images that are decoded when they are read: files, members of archives, rows of tables."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.data.images.base import ImageSource
from oodscope.data.images.decoding import UnreadableImageError, decode
from oodscope.data.images.filehashes import FileHashes
from oodscope.execution.lookahead import ahead


class EncodedSource(ImageSource):
    """A source of encoded images; subclasses say where the bytes are, Pillow does the rest."""

    @abstractmethod
    def encoded(self, index: int) -> Path | BinaryIO:
        """The encoded image: a path, or a stream."""

    @abstractmethod
    def where(self, index: int) -> str:
        """Where this image lies, for messages."""

    @abstractmethod
    def keeping(self, rows: Sequence[int]) -> Self:
        """A source of these images only."""

    def picture(self, index: int) -> Image.Image:
        try:
            return decode(self.encoded(index), lambda: self.where(index))
        except UnreadableImageError as error:
            raise UnreadableImageError(
                f"{error}. Repair or remove it, or go on without it: --skip-unreadable"
            ) from error

    def read(self, index: int) -> NDArray[np.uint8]:
        return np.asarray(self.picture(index))

    def missing(self) -> list[int]:
        """The rows of which nothing is there to read."""
        return []

    def unreadable(self) -> list[int]:
        """The rows that cannot be decoded. Each is tried, unless one with the same bytes was decoded before."""
        digests = self.digests
        with FileHashes() as hashes:
            known = hashes.decoded(digests)
        doubtful = [row for row, digest in enumerate(digests) if digest not in known]
        good = list(ahead(doubtful, self._decodes))
        with FileHashes() as hashes:
            hashes.note_decoded(digests[row] for row, fine in zip(doubtful, good) if fine)
        return [row for row, fine in zip(doubtful, good) if not fine]

    def _decodes(self, index: int) -> bool:
        try:
            self.picture(index)
        except UnreadableImageError:
            return False
        return True
