"""The draws of the bootstrap: which images each replicate holds, and how often, the same for every detector."""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oodscope.metrics.scores import FloatArray, IntArray


class Workspace:
    """Hands out working arrays by name; the same name gives the same memory, whatever it held before.

    An array of some hundred kilobytes comes from the system page by page and goes back when it is freed:
    making it anew costs ten times the arithmetic on it. One workspace belongs to one thread.
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


Words = NDArray[np.uint64]
"""Counts of several replicates side by side in 64-bit words; see :class:`Draws`."""

_SHORT = 2**16


def resamples(n: int, *, seed: int, ood_set: str | None = None) -> Iterator[IntArray]:
    """Endless draws of n rows out of n, with replacement: one array of row numbers for each replicate.

    They depend on nothing but ``n``, ``seed`` and the name of the OOD set (``None``: the ID sample), so that
    any other statistic of the same images can be resampled in step with the ranking metrics.
    """
    numbers = _numbers(seed, ood_set)
    while True:
        yield numbers.integers(n, size=n)


def _numbers(seed: int, ood_set: str | None) -> np.random.Generator:
    key = (0,) if ood_set is None else (1, *ood_set.encode())
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def lanes_for(largest: int) -> int:
    """How many replicates share a word if the largest sample has so many images: 4 below 65,536, else 2."""
    return 4 if largest < _SHORT else 2


class Draws:
    """The resamples of one sample, told as counts, a block of replicates at a time.

    A replicate of n images counts each image some times, n in all. So a running sum of its counts never
    exceeds n, and 64 bits hold the sums of several replicates as lanes that never spill into each other: one
    gather and one running sum of words serve all lanes at once.

    Parameters
    ----------
    n : images of the sample.
    rows, lanes : the block: rows of words, and replicates in a word (see :func:`lanes_for`).
    """

    def __init__(self, n: int, *, seed: int, ood_set: str | None, rows: int, lanes: int) -> None:
        self._numbers = _numbers(seed, ood_set)
        self._words: Words = np.zeros((rows, n), dtype=np.uint64)
        self._lanes = lanes

    def take(self) -> Words:
        """The next ``rows * lanes`` replicates: how often each drew each image. The array is used again."""
        rows, n = self._words.shape
        block = rows * self._lanes
        # the numbers that ``resamples`` yields one replicate at a time, and one count over all of them
        drawn = self._numbers.integers(n, size=(block, n))
        drawn += n * np.arange(block)[:, np.newaxis]
        counts = np.bincount(drawn.ravel(), minlength=block * n)
        lanes_of(self._words, self._lanes)[:] = counts.reshape(rows, self._lanes, n)
        return self._words


def lanes_of(words: Words, lanes: int) -> NDArray[Any]:
    """``[row, lane, image]``: the same memory, seen as small integers."""
    return words.view(np.uint16 if lanes == 4 else np.uint32).reshape(*words.shape, lanes).transpose(0, 2, 1)


def running(words: Words, order: IntArray, workspace: Workspace, name: str) -> Words:
    """How many draws fall on the first k images of ``order``, k = 0 ... n, in every lane."""
    rows, n = words.shape
    sums: Words = workspace.array(f"{name} sums", (rows, n + 1), np.uint64)
    sums[:, 0] = 0
    # "clip" never happens, and spares NumPy the copy that an error in the middle would need
    ordered = words.take(order, axis=1, out=workspace.array("ordered", words.shape, np.uint64), mode="clip")
    np.cumsum(ordered, axis=1, out=sums[:, 1:])
    return sums


def as_floats(words: Words, lanes: int, workspace: Workspace, name: str) -> FloatArray:
    """``[replicate, image]`` in float64, in which the metrics compute."""
    rows, n = words.shape
    values: FloatArray = workspace.array(name, (rows, lanes, n))
    np.copyto(values, lanes_of(words, lanes))
    return values.reshape(rows * lanes, n)
