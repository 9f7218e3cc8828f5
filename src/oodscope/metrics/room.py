"""Room: arrays that are made once and used again."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Room:
    """Hands out working arrays by name; the same name gives the same memory, whatever it held before.

    An array of some hundred kilobytes comes from the system page by page and goes back when it is freed:
    making it anew costs ten times the arithmetic on it. One room belongs to one thread.
    """

    def __init__(self) -> None:
        self._held: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """An array of this shape with any content, valid until the name is asked for again."""
        size = prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._held[name] = np.empty(size, dtype=dtype)
        return held[:size].reshape(shape)
