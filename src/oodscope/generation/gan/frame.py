"""The side and the channels of the images that a generator learns to draw."""

from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.models.generators.stylegan import sides

_FEWEST = 16


def frame_of(images: ImageSet, size: int | None) -> tuple[int, int]:
    """Side and channels: those of the set, unless ``size`` is given or its side cannot be drawn, when it is 32."""
    if len(images) < _FEWEST:
        raise DataError(f"set {images.name!r}: {len(images)} images are too few to train a generator on")
    first = images.images([0])[0]
    side = size or (first.shape[0] if first.shape[0] == first.shape[1] and _possible(first.shape[0]) else 32)
    sides(side)
    return side, 1 if first.ndim == 2 else first.shape[2]


def _possible(side: int) -> bool:
    """Whether a set of this size is trained as it is: small, and reached from 4 to 7 pixels by doubling."""
    return side <= 64 and side in {start * 2**times for start in range(4, 8) for times in range(5)}
