"""The draws of the bootstrap: which images each replicate holds, and how often, the same for every detector."""

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oodscope.metrics.scores import IntArray


class Workspace:
    """Hands out working arrays by name; the same name gives the same memory, whatever it held before.

    An array of some hundred kilobytes comes from the system page by page and goes back when it is freed:
    making it anew costs ten times the arithmetic on it. One workspace belongs to one thread.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """An array of this shape with any content, valid until the name is asked for again."""
        size = prod(shape)
        array = self._arrays.get(name)
        if array is None or array.size < size or array.dtype != dtype:
            array = self._arrays[name] = _aligned(size, np.dtype(dtype))
        return array[:size].reshape(shape)


def _aligned(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that begins with a cache line, so that no vector of its numbers lies across two."""
    line = 64
    memory = np.empty(size * dtype.itemsize + line, dtype=np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + size * dtype.itemsize].view(dtype)


Counts = NDArray[np.uint16]
"""``[image, replicate]``: how often each replicate drew each image."""


class Drawn(NamedTuple):
    """Some replicates of one sample.

    Parameters
    ----------
    counts : how often each drew each image.
    most : the largest of them, which every detector asks for.
    """

    counts: Counts
    most: int


_TOGETHER = 2**19  # counts that are made before they are turned over


def resamples(n: int, *, seed: int, ood_set: str | None = None) -> Iterator[IntArray]:
    """Endless draws of n rows out of n, with replacement: one array of row numbers for each replicate.

    They depend on nothing but ``n``, ``seed`` and the name of the OOD set (``None``: the ID sample), so that
    any other statistic of the same images can be resampled in step with the ranking metrics.
    """
    numbers = random_rows(seed, ood_set)
    while True:
        yield numbers.integers(n, size=n)


def random_rows(seed: int, ood_set: str | None) -> np.random.Generator:
    """The stream of random numbers of one sample."""
    key = (0,) if ood_set is None else (1, *ood_set.encode())
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


class Draws:
    """The resamples of one sample as counts, some replicates at a time.

    Parameters
    ----------
    n : images of the sample.
    seed, ood_set : as in :func:`resamples`, whose replicates these are.
    """

    def __init__(self, n: int, *, seed: int, ood_set: str | None) -> None:
        self.n = n
        self._numbers = random_rows(seed, ood_set)

    def take(self, replicates: int) -> Drawn:
        """The next replicates."""
        counts: Counts = np.empty((self.n, replicates), dtype=np.uint16)
        rows = max(1, _TOGETHER // self.n)
        for start in range(0, replicates, rows):
            stop = min(start + rows, replicates)
            block = np.empty((stop - start, self.n), dtype=np.uint16)
            for row in block:
                drawn = np.bincount(self._numbers.integers(self.n, size=self.n), minlength=self.n)
                # 65,535 of one image: a sample of that many equal draws will not be seen
                np.minimum(drawn, np.iinfo(np.uint16).max, out=row, casting="unsafe")
            counts[:, start:stop] = block.T
        return Drawn(counts, int(counts.max()))
