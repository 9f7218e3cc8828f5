"""From whole splits to the set a benchmark asks for: joined, cut to a part, to some classes, to a random share."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError
from oodscope.data.folds.dealing import hierarchical_choice
from oodscope.data.images.arrays import JoinedSource
from oodscope.data.images.reframed import CroppedSource
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.packaged import class_list


class ListedClasses(StrictModel):
    """The classes of a packaged list, or all others: ImageNet-800 is ImageNet-1K without ImageNet-200."""

    listed: str
    keep: Literal["listed", "others"] = "listed"

    def choose(self, images: ImageSet) -> list[str]:
        listed = set(class_list(self.listed))
        return [name for name in images.class_names if (name in listed) == (self.keep == "listed")]


class DrawnClasses(StrictModel):
    """Classes drawn from every group of a level: DCV-ROOD's hierarchical split (its Algorithm 2).

    From each group of N classes, the floor of ``share`` times N are drawn as outliers.

    Parameters
    ----------
    level : of the hierarchy, such as ``superclass``.
    share : of each group, as an exact fraction or decimal text: ``0.29`` of 100 are 29 classes, which floating point
        would make 28.
    seed : of the draw.
    keep : ``drawn`` for the outliers, ``others`` for the known classes.
    """

    level: str
    share: str
    seed: int
    keep: Literal["drawn", "others"]

    def choose(self, images: ImageSet) -> list[str]:
        if self.level not in images.hierarchy:
            raise DataError(f"set {images.name!r} has no level {self.level!r} of classes to draw from")
        group_of = dict(zip(images.labels.tolist(), images.hierarchy[self.level].tolist()))
        group_of.pop(UNLABELLED, None)
        groups = {images.class_names[label]: group for label, group in group_of.items()}
        members = sorted(groups)
        choice = hierarchical_choice([groups[member] for member in members], self.share, self.seed)
        drawn = {members[number] for number in choice.ood}
        return [name for name in images.class_names if (name in drawn) == (self.keep == "drawn")]


class RandomShare(StrictModel):
    """A random part of a set and what is left of it; the same seed gives two halves that fit.

    Parameters
    ----------
    share : of the images that are held out, rounded to the nearest image.
    keep : the part ``held_out``, or the ``rest``.
    """

    share: float = Field(gt=0, lt=1)
    seed: int
    keep: Literal["held_out", "rest"]

    def apply(self, images: ImageSet) -> ImageSet:
        order = np.random.default_rng(self.seed).permutation(len(images))
        held_out = round(self.share * len(images))
        return images.take(np.sort(order[:held_out] if self.keep == "held_out" else order[held_out:]))


def join(name: str, parts: Sequence[ImageSet]) -> ImageSet:
    """The images of several sets as one; classes of the same name are one class."""
    if len(parts) == 1:
        return parts[0].take(np.arange(len(parts[0])), name)
    names = list(dict.fromkeys(cls for part in parts for cls in part.class_names))
    code = {cls: number for number, cls in enumerate(names)}
    # a row of -1 at the end serves images without a class
    maps = [np.array([*(code[cls] for cls in part.class_names), -1]) for part in parts]
    labels = np.concatenate([mapping[part.labels] for mapping, part in zip(maps, parts)])
    levels = set.intersection(*(set(part.hierarchy) for part in parts))
    offsets = np.cumsum([0, *(len(part.source) for part in parts)])
    return ImageSet(
        name,
        JoinedSource([part.source for part in parts]),
        labels,
        names,
        hierarchy={level: np.concatenate([part.hierarchy[level] for part in parts]) for level in sorted(levels)},
        rows=np.concatenate([part.rows + offset for part, offset in zip(parts, offsets)]),
    )


def restrict(images: ImageSet, classes: Sequence[str]) -> ImageSet:
    """Only the images of some classes, which become the set's classes."""
    code = {name: number for number, name in enumerate(classes)}
    mapping = np.array([*(code.get(name, -1) for name in images.class_names), -1])
    kept = images.take(np.flatnonzero(mapping[images.labels] >= 0))
    return ImageSet(images.name, kept.source, mapping[kept.labels], classes, hierarchy=kept.hierarchy, rows=kept.rows)


def crop(images: ImageSet, side: int) -> ImageSet:
    """The central square of each image."""
    return ImageSet(
        images.name,
        CroppedSource(images.source, side),
        images.labels,
        images.class_names,
        hierarchy=images.hierarchy,
        rows=images.rows,
    )
