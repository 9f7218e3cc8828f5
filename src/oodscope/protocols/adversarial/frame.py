"""Frame: image sets as the pixel tensors that all attacked scorers see."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from oodscope.base.errors import DataError, DetectorError
from oodscope.data.imageset import ImageSet
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.deploy.scorer import Scorer

BATCH = 500


class Frame:
    """Reads images as float pixels in [0, 1] of the size that the scorers take.

    A scorer with a classifier sees what its preprocessing leaves of a picture, before the scaling of pixel values;
    a function sees pictures as they are, all of one size. An attack shows one detector's worst images to all others,
    so all of them must take images of one size.

    Parameters
    ----------
    scorers : whoever is attacked, by name.
    """

    def __init__(self, scorers: Mapping[str, TensorScorer]) -> None:
        if not scorers:
            raise DetectorError("no detector to attack; give at least one scorer")
        shaped = {name: scorer for name, scorer in scorers.items() if isinstance(scorer, Scorer)}
        shapes = {name: (len(each.pixels.scale), *each.pixels.size) for name, each in shaped.items()}
        if len(set(shapes.values())) > 1:
            told = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
            raise DetectorError(f"detectors attacked together must take images of one size; these differ: {told}")
        self._scorer = next(iter(shaped.values()), None)

    def read(self, images: ImageSet, rows: range) -> Tensor:
        """Pixels ``[len(rows), C, H, W]`` on the CPU."""
        numbers = np.arange(rows.start, rows.stop)
        if self._scorer is not None:
            scale, offset = (part.cpu() for part in (self._scorer.pixels.scale, self._scorer.pixels.offset))
            prepared = self._scorer.classifier.prepare(images.pictures(numbers))
            return ((prepared - offset) / scale).clamp(0, 1)
        pictures = [np.atleast_3d(picture) for picture in images.images(numbers)]
        if len({picture.shape for picture in pictures}) > 1:
            raise DataError(f"images of {images.name} differ in size; a function of tensors needs images of one size")
        return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255

    def batches(self, images: ImageSet) -> Iterator[Tensor]:
        """The whole set, some images at a time."""
        for start in range(0, len(images), BATCH):
            yield self.read(images, range(start, min(start + BATCH, len(images))))

    def first(self, images: ImageSet, count: int) -> Tensor:
        """The first images of a set: the sources of chains."""
        starts = range(0, count, BATCH)
        return torch.cat([self.read(images, range(start, min(start + BATCH, count))) for start in starts])


def as_pictures(pixels: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Pixels in [0, 1] as uint8 pictures ``[N, H, W, C]``."""
    levels = (pixels.detach().float().cpu() * 255).round().clamp(0, 255).to(torch.uint8)
    return np.ascontiguousarray(levels.permute(0, 2, 3, 1).numpy())
