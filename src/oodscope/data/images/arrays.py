"""Images that already lie in memory, or in a memory map."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.data.images.base import ImageSource, Picture, pixel_digest


class JoinedSource(ImageSource):
    """The images of each part, one part after the other."""

    def __init__(self, parts: Sequence[ImageSource]) -> None:
        self.parts = list(parts)
        self._ends = np.cumsum([len(part) for part in self.parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, index: int) -> NDArray[np.uint8]:
        part, position = self._locate(index)
        return part.read(position)

    def picture(self, index: int) -> Picture:
        part, position = self._locate(index)
        return part.picture(position)

    def excerpt(self, rows: NDArray[np.int64]) -> "JoinedSource | None":
        numbers = np.searchsorted(self._ends, rows, side="right")
        pieces = []
        for run in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(numbers)) + 1):
            part = self.parts[numbers[run[0]]]
            piece = part.excerpt(rows[run] - int(self._ends[numbers[run[0]]] - len(part)))
            if piece is None:
                return None
            pieces.append(piece)
        return JoinedSource(pieces)

    def name(self, index: int) -> str:
        part, position = self._locate(index)
        return part.name(position)

    def unreadable(self) -> list[int]:
        starts = [0, *self._ends.tolist()]
        return [start + row for start, part in zip(starts, self.parts) for row in part.unreadable()]

    def _digest_all(self) -> list[bytes]:
        return [digest for part in self.parts for digest in part.digests]

    def _locate(self, index: int) -> tuple[ImageSource, int]:
        number = int(np.searchsorted(self._ends, index, side="right"))
        return self.parts[number], index - int(self._ends[number] - len(self.parts[number]))


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
