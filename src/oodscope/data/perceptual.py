r"""What a picture looks like, in 64 bits; and how alike two pictures are.

The perceptual hash is the sign of the 64 lowest frequencies of a 32 x 32 grey thumbnail, the constant left out:

.. math:: b_k = [\,\langle x, c_{u_k} c_{v_k}^\top \rangle > 0\,], \qquad c_u(i) = \cos(\pi u (2 i + 1) / 64)

A change of brightness or contrast multiplies or shifts the thumbnail and leaves every sign alone; compression and
resizing touch high frequencies only. A crop moves everything, so each picture is hashed in several *views*: whole,
and with a sixteenth cut off around it or at two sides. A crop of a picture resembles one of its views.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.data.rgb import Picture, as_rgb

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


def resemblance(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """How alike two pictures are, given their thumbnails: 1 for equal ones, around 0 for unrelated ones.

    The correlation of all pixels in colour, of each whole picture with every view of the other; the best counts.
    Brightness and contrast do not matter, small crops little.
    """
    one, two = _centred(first), _centred(second)
    return float(max((one[0] @ two.T).max(), (two[0] @ one.T).max()))


def _grey(small: NDArray[np.uint8]) -> NDArray[np.float32]:
    grey: NDArray[np.float32] = np.einsum("...c,c->...", small.astype(np.float32), _LUMA)
    return grey


def _frequencies(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    spectrum: NDArray[np.float32] = np.einsum("ui,...ij,vj->...uv", _COSINES, grey, _COSINES, optimize=True)
    low: NDArray[np.float32] = spectrum[..., _LOW[:, 0], _LOW[:, 1]]
    return low


def _centred(small: NDArray[np.uint8]) -> NDArray[np.float32]:
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
