"""ImageSet: images, their labels, and a fingerprint of both."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError, did_you_mean
from oodscope.base.hashing import fingerprint
from oodscope.data.images.arrays import ArraySource
from oodscope.data.images.base import ImageSource, Picture
from oodscope.data.images.dataset import DatasetSource

UNLABELLED = -1

MOST_CLASSES = 1_000_000
"""Of a set that names no classes: a larger label is a mistake, and names for all below it would fill the memory."""


class ImageSet:
    """Images read when needed, with labels in the set's own classes.

    Anything becomes one: see ``from_arrays``, ``from_dataset`` here and, in ``oodscope.data``, ``open_folder``,
    ``open_list``, ``open_csv``, ``open_npz``, ``open_webdataset``, ``open_hf``. A subset (``take``) keeps its
    parent's source and remembers its rows, so activations extracted for the parent serve every subset of it.

    Parameters
    ----------
    name : how tables call it.
    source : where the pixels come from.
    labels : one integer per image, indexing ``class_names``; ``None`` for images without classes.
    class_names : the set's own classes. Out-of-distribution sets keep theirs: cross-validation over
        OOD classes and class-clustered intervals need them.
    hierarchy : per-image columns of class membership from coarse to fine, such as
        ``{"script": [...], "character": [...]}``.
    rows : which images of the source belong to this set; all by default.

    Examples
    --------
    >>> images = oods.ImageSet.from_arrays("mine", np.zeros((6, 8, 8, 3), np.uint8), [0, 1] * 3, ["ant", "bee"])
    >>> len(images.take([0, 2]))
    2
    """

    def __init__(
        self,
        name: str,
        source: ImageSource,
        labels: ArrayLike | None = None,
        class_names: Sequence[str] = (),
        *,
        hierarchy: Mapping[str, ArrayLike] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        self.name = name
        self.source = source
        self.rows = np.arange(len(source)) if rows is None else np.asarray(rows, dtype=np.int64)
        if len(self.rows) == 0:
            raise DataError(f"set {name!r} is empty: it holds no image")
        self.skipped: tuple[str, ...] = ()
        """Names of images left out because they could not be decoded."""
        self.labels = _check_labels(name, labels, len(self.rows), class_names)
        self.class_names = tuple(class_names) or tuple(str(c) for c in range(int(self.labels.max()) + 1))
        self.hierarchy = {level: np.asarray(column) for level, column in (hierarchy or {}).items()}
        for level, column in self.hierarchy.items():
            if len(column) != len(self.rows):
                raise DataError(
                    f"set {name!r}: hierarchy level {level!r} has {len(column)} entries for {len(self.rows)} images"
                )

    @classmethod
    def from_arrays(
        cls,
        name: str,
        images: ArrayLike,
        labels: ArrayLike | None = None,
        class_names: Sequence[str] = (),
        hierarchy: Mapping[str, ArrayLike] | None = None,
    ) -> "ImageSet":
        """From a uint8 array ``[N, H, W]`` or ``[N, H, W, C]``."""
        return cls(name, ArraySource(name, np.asarray(images)), labels, class_names, hierarchy=hierarchy)

    @classmethod
    def from_dataset(cls, name: str, dataset: Any) -> "ImageSet":
        """From a torchvision-style dataset: ``dataset[i]`` gives ``(PIL image, label)`` without a transform."""
        source = DatasetSource(name, dataset)
        return cls(name, source, source.labels(), tuple(getattr(dataset, "classes", ())))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"ImageSet({self.name!r}, {len(self)} images, {len(self.class_names)} classes)"

    def images(self, rows: Sequence[int] | NDArray[np.int64]) -> list[NDArray[np.uint8]]:
        """The pixels of some rows of this set, uint8 ``[H, W]`` or ``[H, W, C]``."""
        return self.source.read_many([int(self.rows[row]) for row in rows])

    def pictures(self, rows: Sequence[int] | NDArray[np.int64]) -> Sequence[Picture]:
        """The same images in the form that is cheapest to have, each decoded when it is taken.

        What a classifier's ``prepare`` wants: one decoded image at a time, fresh in the processor's cache.
        """
        return self.source.pictures(self.rows[np.asarray(rows, dtype=np.int64)])

    def sample_ids(self) -> list[str]:
        """A stable name for each image, unique within its set."""
        return [self.source.name(int(row)) for row in self.rows]

    def take(self, rows: ArrayLike, name: str | None = None) -> "ImageSet":
        """The subset of these rows, in this order."""
        chosen = np.asarray(rows, dtype=np.int64)
        return ImageSet(
            name or self.name,
            self.source,
            self.labels[chosen],
            self.class_names,
            hierarchy={level: column[chosen] for level, column in self.hierarchy.items()},
            rows=self.rows[chosen],
        )

    def in_classes(self, class_names: Sequence[str]) -> "ImageSet":
        """The same images with labels that index ``class_names``, matched by name."""
        if self.class_names == tuple(class_names):
            return self
        position = {name: number for number, name in enumerate(class_names)}
        unknown = sorted(set(self.class_names) - set(position))
        if unknown:
            raise DataError(
                f"set {self.name!r} has the class {unknown[0]!r}, which is not among the in-distribution "
                f"classes.{did_you_mean(unknown[0], class_names)}"
            )
        # the label -1 takes the last entry, which keeps it
        numbers = np.array([*(position[name] for name in self.class_names), UNLABELLED], dtype=np.int64)
        moved = ImageSet(
            self.name, self.source, numbers[self.labels], class_names, hierarchy=self.hierarchy, rows=self.rows
        )
        moved.skipped = self.skipped
        return moved

    def digests(self) -> list[bytes]:
        """The content digest of each image; equal digests mean equal images."""
        return [self.source.digests[row] for row in self.rows]

    @cached_property
    def fingerprint(self) -> str:
        """Of the images, their order, labels and class names: what a result row records."""
        return fingerprint(self.source.key, self.rows, self.labels, list(self.class_names))


def _check_labels(name: str, labels: ArrayLike | None, count: int, class_names: Sequence[str]) -> NDArray[np.int64]:
    if labels is None:
        return np.full(count, UNLABELLED, dtype=np.int64)
    checked = np.asarray(labels)
    if checked.ndim != 1 or len(checked) != count:
        raise DataError(f"set {name!r}: {count} images need {count} labels, got an array of shape {checked.shape}")
    if not np.issubdtype(checked.dtype, np.integer):
        raise DataError(f"set {name!r}: labels must be integers, not {checked.dtype}")
    checked = checked.astype(np.int64)
    limit = len(class_names) or MOST_CLASSES
    wrong = np.flatnonzero((checked < UNLABELLED) | (checked >= limit))
    if len(wrong):
        raise DataError(
            f"set {name!r}: label {checked[wrong[0]]} of image {wrong[0]} is out of range "
            f"0..{limit - 1} ({len(wrong)} such labels)"
        )
    return checked
