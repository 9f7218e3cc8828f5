r"""Background: how alike the pictures of one set are, so that copies can be distinguished from look-alikes.

Grey silhouettes resemble each other more than photographs do, and no fixed similarity separates copies from
look-alikes in both. So a pair is compared with what its own sets show. Let :math:`r` be its distance (one minus the
correlation of the thumbnails, over small shifts) and :math:`b` the smaller of the two pictures' distances to their
nearest neighbours inside their own sets. A copy has :math:`r \ll b`; the nearest of independent pictures has
:math:`r \approx b`. Inside a set the ratio of first to second nearest distance :math:`\rho` follows
:math:`P(\rho < t) = t^k`, with :math:`k` from its median, which rare copies do not move; so

.. math:: t = (\alpha / n)^{1/k}

is passed by chance :math:`\alpha` times in a comparison of :math:`n` pictures.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from oodscope.data.images.decoding import Picture, as_rgb
from oodscope.data.imageset import ImageSet
from oodscope.data.similarity.perceptual import thumbnails

SAMPLE = 1000
"""Pictures of a set that stand for its background."""
ALPHA = 0.01
"""Pictures that are taken for copies by chance, in one comparison of two sets."""
_SHIFT = 2
_NATIVE = 48
_LIMITS = (0.05, 0.5)
_NEAREST = 1e-6

Small = NDArray[np.uint8]


class Background:
    """Nearest neighbours inside a set, from a sample of it.

    Parameters
    ----------
    images : the set; up to 1,000 of its pictures are read, drawn with a fixed seed.
    native : compare at the pictures' own size (``is_native``), where a shift by a pixel stays one.
    """

    def __init__(self, images: ImageSet, native: bool = False) -> None:
        rows = np.arange(len(images))
        if len(rows) > SAMPLE:
            rows = np.sort(np.random.default_rng(0).choice(len(rows), SAMPLE, replace=False))
        self.rows = rows
        self._small = np.stack([small_picture(image, native) for row in rows for image in images.images([int(row)])])

    @cached_property
    def exponent(self) -> float:
        """:math:`k` of the set; infinite where it holds too few pictures to say."""
        if len(self.rows) < 20:
            return float("inf")
        distances = shifted_distances(self._small, self._small)
        np.fill_diagonal(distances, np.inf)
        first, second = np.partition(distances, 1, axis=1)[:, :2].T
        ratio = float(np.median(np.maximum(first, _NEAREST) / np.maximum(second, _NEAREST)))
        return float(np.log(0.5) / np.log(min(ratio, 0.999)))

    def nearest(self, rows: Sequence[int], small: Small, partners: Sequence[int]) -> NDArray[np.float32]:
        """The distance of pictures of the set, ``[n, H, W, 3]``, to the nearest other one of the sample.

        Parameters
        ----------
        rows : where they stand in the set.
        partners : other rows that are left out: the suspected copies, where they lie in the same set.
        """
        distances = shifted_distances(self._small, small)
        for left_out in (rows, partners):
            distances[self.rows[:, None] == np.asarray(left_out)] = 2.0
        nearest: NDArray[np.float32] = distances.min(axis=0)
        return nearest

    def threshold(self, count: int) -> float:
        """The ratio below which a pair counts as copies, where ``count`` pictures are compared."""
        return float(np.clip((ALPHA / max(count, 1)) ** (1 / self.exponent), *_LIMITS))


@lru_cache(maxsize=16)
def background_of(images: ImageSet, native: bool) -> Background:
    """The background of a set, made once."""
    return Background(images, native)


def is_native(first: ImageSet, second: ImageSet) -> bool:
    """Whether all pictures of two sets are small and of one size."""
    shapes = {each.shape[:2] for images in (first, second) for each in images.images([0, len(images) - 1])}
    return len(shapes) == 1 and max(shapes.pop()) <= _NATIVE


def small_picture(image: Picture, native: bool) -> Small:
    """A picture as it is compared: itself in RGB, or its thumbnail."""
    return as_rgb(image) if native else thumbnails(image)[0]


def shifted_distances(first: Small, second: Small) -> NDArray[np.float32]:
    """One minus the correlation of every two pictures ``[n, H, W, 3]`` in grey, at the best shift up to two pixels."""
    one = _unit(_grey(first)[:, _SHIFT:-_SHIFT, _SHIFT:-_SHIFT])
    (high, wide), two = (edge - 2 * _SHIFT for edge in first.shape[1:3]), _grey(second)
    best = np.full((len(first), len(second)), -1, dtype=np.float32)
    for top in range(2 * _SHIFT + 1):
        for left in range(2 * _SHIFT + 1):
            np.maximum(best, one @ _unit(two[:, top : top + high, left : left + wide]).T, out=best)
    distances: NDArray[np.float32] = 1 - best
    return distances


def _grey(small: Small) -> NDArray[np.float32]:
    grey: NDArray[np.float32] = small.astype(np.float32).mean(axis=3)
    return grey


def _unit(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    flat = pictures.reshape(len(pictures), -1)
    flat = flat - flat.mean(axis=1, keepdims=True)
    unit: NDArray[np.float32] = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6)
    return unit
