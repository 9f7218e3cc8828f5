"""Pair: the images of a classifier's classes and the outliers they are told from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oodscope.base.errors import DataError
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.public.selection import restrict


@dataclass(frozen=True, eq=False)
class Pair:
    """Two pools of images that folds are drawn from.

    Parameters
    ----------
    id_set : every image that may train or test the classifier, with labels.
    ood_set : outliers with classes of their own: a fold tests on classes that it did not learn from.
    level : a level of the sets' hierarchy, such as ``"superclass"``, if every fold shall hold OOD classes of every
        one of its strata, as far as there are enough.
    """

    id_set: ImageSet
    ood_set: ImageSet
    level: str | None = None

    @property
    def name(self) -> str:
        """``ID/OOD``, as tables say it."""
        return f"{self.id_set.name}/{self.ood_set.name}"


def distinct_sets(pairs: Sequence[Pair]) -> list[ImageSet]:
    """Every set of some pairs once."""
    return list({images.name: images for pair in pairs for images in (pair.id_set, pair.ood_set)}.values())


def compact_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with labels that count the classes that occur; no two pairs or sets may have one name."""
    if not pairs:
        raise DataError("no pair to cross-validate: name an ID set and at least one OOD set")
    compact: dict[tuple[str, str], ImageSet] = {}
    for images in (images for pair in pairs for images in (pair.id_set, pair.ood_set)):
        compact.setdefault((images.name, images.fingerprint), _in_own_classes(images))
    names = [name for name, _ in compact]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two different sets are called {name!r}; give each a name of its own")

    def found(images: ImageSet) -> ImageSet:
        return compact[images.name, images.fingerprint]

    made = [Pair(found(pair.id_set), found(pair.ood_set), pair.level) for pair in pairs]
    for pair in made:
        if [other.name for other in made].count(pair.name) > 1:
            raise DataError(f"pair {pair.name!r} is named twice")
    return made


def _in_own_classes(images: ImageSet) -> ImageSet:
    """The same images with labels 0, 1, ... of the classes that occur: a head has no use for others."""
    present = np.unique(images.labels)
    if UNLABELLED in present or len(present) == len(images.class_names):
        # images without a class are refused, in words, where folds are drawn
        return images
    return restrict(images, [images.class_names[label] for label in present])
