r"""What a picture looks like, in 64 bits; and how alike two pictures are.

The perceptual hash is the sign of the 64 lowest frequencies of a 32 x 32 grey thumbnail, the constant left out:

.. math:: b_k = [\,\langle x, c_{u_k} c_{v_k}^\top \rangle > 0\,], \qquad c_u(i) = \cos(\pi u (2 i + 1) / 64)

A change of brightness or contrast multiplies or shifts the thumbnail and leaves every sign alone; compression and
resizing touch high frequencies only. A crop moves everything, so each picture is hashed in several *views*: whole,
and with a sixteenth cut off around it or at two sides. A crop of a picture resembles one of its views.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import uniform_filter

from oodscope.data.images.decoding import Picture, as_rgb

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


SIDE = 32
BITS = 64
_CUT = 1 / 16

VIEWS: tuple[tuple[float, float, float, float], ...] = (
    (0, 0, 1, 1),
    (_CUT, _CUT, 1 - _CUT, 1 - _CUT),
    (0, 0, 1 - _CUT, 1 - _CUT),
    (_CUT, 0, 1, 1 - _CUT),
    (0, _CUT, 1 - _CUT, 1),
    (_CUT, _CUT, 1, 1),
)
"""Left, top, right and bottom of each view, as parts of width and height; the first is the whole picture."""

FLAT = 4.0
"""A thumbnail whose grey values spread less than this (standard deviation, of 255) is too plain to compare."""


def thumbnails(image: Picture) -> NDArray[np.uint8]:
    """Every view of a picture in small: ``[V, 32, 32, 3]``."""
    picture = Image.fromarray(as_rgb(image))
    width, height = picture.size
    scale = np.array([width, height, width, height])
    boxes = (tuple(map(float, np.array(view) * scale)) for view in VIEWS)
    return np.stack(
        [np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box)) for box in boxes]  # type: ignore[arg-type]
    )


def perceptual_hashes(small: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The hashes of thumbnails ``[..., 32, 32, 3]``, packed into eight bytes each."""
    return np.packbits(_frequencies(_grey(small)) > 0, axis=-1)


def is_flat(small: NDArray[np.uint8]) -> bool:
    """Whether a thumbnail shows next to nothing, so that its hash would be noise."""
    return bool(_grey(small).std() < FLAT)


class Resemblance(NamedTuple):
    """How alike two pictures are: 1 for equal ones, around 0 for unrelated ones.

    Parameters
    ----------
    whole : the correlation of all pixels in colour.
    detail : the same after each pixel's surroundings (9 x 9) are subtracted. Two fields under two skies correlate as
        a whole; only copies do so in detail.
    """

    whole: float
    detail: float


def resemblance(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> Resemblance:
    """Compare two pictures by their thumbnails: each whole picture with every view of the other; the best counts.

    Brightness and contrast do not matter, small crops little.
    """
    one, two = _centred(first), _centred(second)
    forth, back = one[0] @ two.T, two[0] @ one.T
    left, right = (0, int(forth.argmax())) if forth.max() >= back.max() else (int(back.argmax()), 0)
    fine = (_centred(_without_surroundings(small[view])) for small, view in ((first, left), (second, right)))
    detail = float(np.prod(list(fine), axis=0).sum())
    return Resemblance(float(one[left] @ two[right]), detail)


def _grey(small: NDArray[np.uint8]) -> NDArray[np.float32]:
    grey: NDArray[np.float32] = np.matmul(small.astype(np.float32), _LUMA)
    return grey


def _frequencies(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    spectrum: NDArray[np.float32] = np.matmul(np.matmul(_COSINES, grey), _COSINES.T)
    low: NDArray[np.float32] = spectrum[..., _LOW[:, 0], _LOW[:, 1]]
    return low


def _without_surroundings(small: NDArray[np.uint8]) -> NDArray[np.float32]:
    values = small.astype(np.float32)
    rest: NDArray[np.float32] = values - uniform_filter(values, (9, 9, 1), mode="nearest")
    return rest[None]


def _centred(small: NDArray[Any]) -> NDArray[np.float32]:
    centred: NDArray[np.float32] = small.reshape(len(small), -1).astype(np.float32)
    centred -= centred.mean(axis=1, keepdims=True)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-6)
    return centred


def _lowest() -> NDArray[np.int64]:
    """The 64 lowest pairs of frequencies after (0, 0), diagonal by diagonal."""
    pairs = [(u, v) for u in range(SIDE) for v in range(SIDE)]
    return np.array(sorted(pairs, key=lambda pair: (sum(pair), pair))[1 : BITS + 1])


_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_LOW = _lowest()
_COSINES = np.cos(np.pi * np.outer(np.arange(_LOW.max() + 1), 2 * np.arange(SIDE) + 1) / (2 * SIDE)).astype(np.float32)
