"""Jigsaw: images cut into tiles that are laid out anew, as outliers made from known images alone."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from oodscope.data.images.base import ImageSource
from oodscope.data.imageset import ImageSet


def jigsaw(images: ImageSet, pieces: int = 4, seed: int = 0) -> ImageSet:
    """The images of a set with their tiles shuffled: same colours and textures, no object left.

    Each image has its own order of ``pieces`` x ``pieces`` tiles, which depends on the seed and its place in
    the set only. Pixels that do not fill a tile stay where they are. The set has no labels.
    """
    return ImageSet(f"{images.name}-jigsaw", JigsawSource(images, pieces, seed))


class JigsawSource(ImageSource):
    """The images of ``parent``, shuffled when they are read."""

    def __init__(self, parent: ImageSet, pieces: int, seed: int) -> None:
        self.parent = parent
        self.pieces = pieces
        self.seed = seed

    def __len__(self) -> int:
        return len(self.parent)

    def read(self, index: int) -> NDArray[np.uint8]:
        (image,) = self.parent.images([index])
        height, width = (max(1, edge // self.pieces) for edge in image.shape[:2])
        rows, columns = image.shape[0] // height, image.shape[1] // width
        rows, columns = min(rows, self.pieces), min(columns, self.pieces)
        order = np.random.default_rng([self.seed, index]).permutation(rows * columns)
        laid = image.copy()
        for place, tile in enumerate(order):
            top, left = (place // columns) * height, (place % columns) * width
            y, x = (tile // columns) * height, (tile % columns) * width
            laid[top : top + height, left : left + width] = image[y : y + height, x : x + width]
        return laid

    def name(self, index: int) -> str:
        return f"{self.parent.sample_ids()[index]}#jigsaw"

    def _digest_all(self) -> list[bytes]:
        recipe = f"jigsaw {self.pieces} {self.seed}"
        return [
            hashlib.blake2b(digest + f"{recipe} {index}".encode(), digest_size=16).digest()
            for index, digest in enumerate(self.parent.digests())
        ]
