"""Images from a torchvision-style dataset."""

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.base.errors import DataError
from oodscope.data.images.base import ImageSource, pixel_digest


class DatasetSource(ImageSource):
    """Wraps ``dataset[i] -> (image, label)``; the image must be a PIL image or a uint8 array.

    A dataset that already returns normalised tensors is refused: the classifier owns the preprocessing.
    Somebody else's dataset may seek in one open file, so one thread asks it at a time.
    """

    def __init__(self, label: str, dataset: Any) -> None:
        self.label = label
        self.dataset = dataset
        self._one_at_a_time = Lock()

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, index: int) -> NDArray[np.uint8]:
        with self._one_at_a_time:
            image = self.dataset[index][0]
        if isinstance(image, Image.Image):
            image = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
        if not (isinstance(image, np.ndarray) and image.dtype == np.uint8):
            raise DataError(
                f"set {self.label!r}: the dataset must give PIL images or uint8 arrays, not "
                f"{type(image).__name__}; build it without a transform, the classifier owns the preprocessing"
            )
        return image

    def name(self, index: int) -> str:
        return f"{self.label}/{index}"

    def labels(self) -> list[int]:
        """Every label: from ``targets`` or ``labels`` where the dataset has them, else by reading all items."""
        for attribute in ("targets", "labels", "_labels"):
            known = getattr(self.dataset, attribute, None)
            if known is not None and len(known) == len(self):
                return [int(label) for label in known]
        return [int(self.dataset[index][1]) for index in range(len(self))]

    def _digest_all(self) -> list[bytes]:
        return [pixel_digest(self.read(index)) for index in range(len(self))]
