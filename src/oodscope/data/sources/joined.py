"""Several sources read as one: the official train and test images of a set as one pool."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oodscope.data.sources.base import ImageSource, Picture


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
