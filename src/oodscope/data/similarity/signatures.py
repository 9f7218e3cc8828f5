"""Signatures: what an image set looks like, read once: a digest of its pixels and perceptual hashes of its views."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodscope.data.images.decoding import picture_digest
from oodscope.data.imageset import ImageSet
from oodscope.data.similarity.perceptual import is_flat, perceptual_hashes, thumbnails
from oodscope.execution.progress import SILENT, Progress


@dataclass(frozen=True)
class Signatures:
    """One entry per image of a set.

    Parameters
    ----------
    digests : of the decoded pixels in RGB, so that an array, a PNG and a grey picture can be equal.
    hashes : ``[N, V, 8]``, a perceptual hash of every view; see ``oodscope.data.similarity.perceptual``.
    flat : pictures too plain for their hash to mean anything.
    """

    digests: list[bytes]
    hashes: NDArray[np.uint8]
    flat: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.digests)


def read_signatures(images: ImageSet, progress: Progress = SILENT) -> Signatures:
    """Read every image of a set once; 60 bytes of each are kept."""
    digests: list[bytes] = []
    hashes, flat = [], []
    with progress.stage(f"look at {images.name}", len(images)) as advance:
        for row in range(len(images)):
            (image,) = images.images([row])
            small = thumbnails(image)
            digests.append(picture_digest(image))
            hashes.append(perceptual_hashes(small))
            flat.append(is_flat(small[0]))
            advance(1)
    return Signatures(digests, np.stack(hashes), np.array(flat))
