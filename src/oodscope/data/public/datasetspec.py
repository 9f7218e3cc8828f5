"""Sets of a benchmark that come from public datasets, by the dataset's name."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.data.packaged import row_list
from oodscope.data.public.cards import load_card
from oodscope.data.public.root import DatasetRoot
from oodscope.data.public.selection import DrawnClasses, ListedClasses, RandomShare, crop, join, restrict
from oodscope.data.public.state import State
from oodscope.metrics.metric import Population


class DatasetSpec(StrictModel):
    """Splits of a dataset that has a card, and which part of them.

    Parameters
    ----------
    dataset : name of the card (``oodscope data list``).
    split : one split, or several that are joined.
    rows : a packaged list of rows, such as OpenOOD's validation part of the CIFAR-10 test images.
    classes : keep some classes only.
    random : keep a random part.
    center_crop : cut each image to its central square of this side first.
    count : how many images the set must have; a different number stops the run.
    optional : the benchmark can be used without it where it is missing.
    """

    source: Literal["dataset"]
    dataset: str
    split: str | list[str]
    rows: str | None = None
    classes: ListedClasses | DrawnClasses | None = None
    random: RandomShare | None = None
    center_crop: int | None = Field(default=None, gt=0)
    count: int | None = Field(default=None, gt=0)
    optional: bool = False

    @property
    def splits(self) -> list[str]:
        return [self.split] if isinstance(self.split, str) else self.split

    @property
    def population(self) -> Population:
        """What the classes of the set are, as its card says."""
        return load_card(self.dataset).classes

    def absent(self, datasets: DatasetRoot) -> bool:
        """Whether nothing of it is there."""
        return all(datasets.state(self.dataset, split) is State.MISSING for split in self.splits)

    def open_from(self, datasets: DatasetRoot, name: str) -> ImageSet:
        """The set, cut as the parameters say, and counted."""
        images = join(name, [datasets.open(self.dataset, split) for split in self.splits])
        if self.center_crop is not None:
            images = crop(images, self.center_crop)
        if self.rows is not None:
            images = images.take(self._rows(images))
        if self.classes is not None:
            images = restrict(images, self.classes.choose(images))
        if self.random is not None:
            images = self.random.apply(images)
        if self.count is not None and len(images) != self.count and not datasets.lenient:
            raise DataError(f"set {name!r} of {self.dataset}: {len(images):,} images, {self.count:,} expected")
        return images

    def _rows(self, images: ImageSet) -> NDArray[np.int64]:
        rows = row_list(self.rows or "")
        if len(rows.member) != len(images):
            known, found = f"{len(rows.member):,}", f"{len(images):,}"
            raise DataError(f"set {images.name!r}: row list {self.rows!r} is for {known} images, not {found}")
        return rows.positions(images.labels)
