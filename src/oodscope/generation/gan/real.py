"""RealImages: the training images of a generator, on the device, to be drawn at random or by class."""

import torch
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.models.generators.stylegan import sides
from oodscope.training.loop.pixels import Resident

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


class RealImages:
    """All images of a set, uint8, with their classes. Drawing asks nothing of the device.

    Parameters
    ----------
    images : the set; read whole.
    size, channels : of the images that are drawn.
    conditional : whether classes are needed: then every image must have one, and every class an image.
    flip : mirror every second image that is drawn.
    """

    def __init__(
        self, images: ImageSet, size: int, channels: int, device: torch.device, *, conditional: bool, flip: bool = False
    ) -> None:
        preprocess = Preprocess(size=size, mean=(0.0,) * channels, std=(1.0,) * channels)
        self.device, self.flip = device, flip
        self.pixels = Resident(images, preprocess).pixels.to(device)
        self.labels = torch.from_numpy(images.labels).to(device)
        if conditional:
            counts = _class_counts(images)
            self._by_class = self.labels.argsort(stable=True)
            self._starts, self._counts = (counts.cumsum(0) - counts).to(device), counts.to(device)

    def __len__(self) -> int:
        return len(self.pixels)

    def draw(self, count: int, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random images in [-1, 1] and their labels."""
        rows = torch.randint(len(self), (count,), generator=draws, device=self.device)
        return self._at(rows, draws), self.labels[rows]

    def of_classes(self, classes: Tensor, draws: torch.Generator) -> Tensor:
        """For each class a random image of it, in [-1, 1]."""
        counts = self._counts[classes]
        chance = torch.rand(len(classes), generator=draws, device=self.device)
        place = torch.minimum((chance * counts).long(), counts - 1)
        return self._at(self._by_class[self._starts[classes] + place], draws)

    def _at(self, rows: Tensor, draws: torch.Generator) -> Tensor:
        images = self.pixels[rows].to(torch.float32, memory_format=torch.channels_last) / 127.5 - 1
        if self.flip:
            mirrored = torch.rand(len(rows), 1, 1, 1, generator=draws, device=self.device) < 0.5
            images = torch.where(mirrored, images.flip(3), images)
        return images


def _class_counts(images: ImageSet) -> Tensor:
    labels = torch.from_numpy(images.labels)
    if int(labels.min()) < 0:
        raise DataError(f"set {images.name!r}: a class-conditional generator needs a label for every image")
    counts = torch.bincount(labels, minlength=len(images.class_names))
    if int(counts.min()) == 0:
        empty = images.class_names[int(counts.argmin())]
        raise DataError(f"set {images.name!r}: the class {empty!r} has no image to learn from")
    return counts


def unit_range(images: Tensor) -> Tensor:
    """From [-1, 1] to [0, 1]; gradients pass, also beyond the range."""
    return (images + 1) / 2
