"""Pairs of hashes that differ in few bits, found block by block: a hundred thousand against as many take minutes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_BLOCK = 2048


def close_pairs(
    first: NDArray[np.uint8], second: NDArray[np.uint8], radius: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    r"""Rows ``(i, j)`` of packed hashes ``[n, bytes]`` with at most ``radius`` bits between them.

    With bits as :math:`\pm 1` the distance is :math:`(B - \langle a, b \rangle) / 2`: one matrix product per block,
    exact in float32.
    """
    bits = 8 * first.shape[1]
    for top in range(0, len(first), _BLOCK):
        rows = _signs(first[top : top + _BLOCK])
        for left in range(0, len(second), _BLOCK):
            near = np.flatnonzero(rows @ _signs(second[left : left + _BLOCK]).T >= bits - 2 * radius)
            if len(near):
                i, j = np.divmod(near, len(second[left : left + _BLOCK]))
                yield top + i, left + j


def _signs(packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.unpackbits(packed, axis=1).astype(np.float32) * 2 - 1
