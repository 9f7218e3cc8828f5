"""Mixtures: each image blended with one of another class, as outliers made from known images alone."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.data.images.base import ImageSource
from oodscope.data.imageset import UNLABELLED, ImageSet

SHARES = (0.25, 0.5, 0.75)
TRIES = 100


def mixtures(images: ImageSet, shares: Sequence[float] = SHARES, seed: int = 0) -> ImageSet:
    r"""Images :math:`\alpha x + (1-\alpha) x'`, all ``shares`` :math:`\alpha` of the first image, then of the second.

    :math:`x'` shows another class; which image it is depends on the seed and the place of :math:`x` in the set only.
    Where there is no other class, or there are no labels, it is any other image. The set has no labels.
    """
    return ImageSet(f"{images.name}-mixtures", MixedSource(images, tuple(shares), seed))


class MixedSource(ImageSource):
    """Blends of the images of ``parent``, made when they are read."""

    def __init__(self, parent: ImageSet, shares: tuple[float, ...], seed: int) -> None:
        self.parent, self.shares, self.seed = parent, shares, seed
        self._partners = _partners(parent.labels, seed)

    def __len__(self) -> int:
        return len(self.parent) * len(self.shares)

    def read(self, index: int) -> NDArray[np.uint8]:
        row, place = divmod(index, len(self.shares))
        first, second = self.parent.images([row, int(self._partners[row])])
        share = self.shares[place]
        other = Image.fromarray(second).convert(Image.fromarray(first).mode)
        if other.size != (first.shape[1], first.shape[0]):
            other = other.resize((first.shape[1], first.shape[0]), Image.Resampling.BILINEAR)
        blend = share * first.astype(np.float64) + (1 - share) * np.asarray(other, dtype=np.float64)
        return np.rint(blend).astype(np.uint8)

    def name(self, index: int) -> str:
        row, place = divmod(index, len(self.shares))
        return f"{self.parent.sample_ids()[row]}#mixture{self.shares[place]:g}"

    def _digest_all(self) -> list[bytes]:
        digests = self.parent.digests()
        return [
            hashlib.blake2b(digests[row] + digests[self._partners[row]] + f"{share}".encode(), digest_size=16).digest()
            for row in range(len(self.parent))
            for share in self.shares
        ]


def _partners(labels: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """For each row, a row of another class; any other row where a hundred draws find none."""
    count = len(labels)
    partners = np.empty(count, np.int64)
    for row in range(count):
        draws = np.random.default_rng([seed, row]).integers(count, size=TRIES)
        others = draws[draws != row]
        apart = others[(labels[others] != labels[row]) & (labels[others] != UNLABELLED)]
        candidates = apart if len(apart) and labels[row] != UNLABELLED else others
        partners[row] = candidates[0] if len(candidates) else (row + 1) % count
    return partners
