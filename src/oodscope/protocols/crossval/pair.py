"""Pair: the images of a classifier's classes and the outliers they are told from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oodscope.base.errors import DataError, did_you_mean
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.selection import restrict


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

    def check(self) -> None:
        """Refuse what no folds can be drawn from, and images on both sides."""
        for images in (self.id_set, self.ood_set):
            if self.level is not None and self.level not in images.hierarchy:
                known = list(images.hierarchy)
                raise DataError(
                    f"set {images.name!r} has no level {self.level!r} in its hierarchy."
                    f"{did_you_mean(self.level, known)} It has: {', '.join(known) or 'none'}"
                )
        if len(np.unique(self.id_set.labels)) < 2:
            raise DataError(f"set {self.id_set.name!r} shows one class only; a classifier needs at least two")
        known_digests = set(self.id_set.digests())
        names = self.ood_set.sample_ids()
        both = [name for name, digest in zip(names, self.ood_set.digests()) if digest in known_digests]
        if both:
            raise DataError(
                f"pair {self.name!r}: {len(both)} image{'s' * (len(both) > 1)} of {self.ood_set.name!r} "
                f"also in {self.id_set.name!r} ({', '.join(both[:3])}{', ...' * (len(both) > 3)}); an image cannot be "
                "known and unknown at once, so remove them from one of the two"
            )


def checked_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with labels that count the classes that occur, each checked; no two may have one name."""
    if not pairs:
        raise DataError("no pair to cross-validate: name an ID set and at least one OOD set")
    compact: dict[tuple[str, str], ImageSet] = {}
    for images in (images for pair in pairs for images in (pair.id_set, pair.ood_set)):
        compact.setdefault((images.name, images.fingerprint), in_own_classes(images))
    names = [name for name, _ in compact]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two different sets are called {name!r}; give each a name of its own")

    def found(images: ImageSet) -> ImageSet:
        return compact[images.name, images.fingerprint]

    checked = [Pair(found(pair.id_set), found(pair.ood_set), pair.level) for pair in pairs]
    for pair in checked:
        if [other.name for other in checked].count(pair.name) > 1:
            raise DataError(f"pair {pair.name!r} is named twice")
        pair.check()
    return checked


def in_own_classes(images: ImageSet) -> ImageSet:
    """The same images with labels 0, 1, ... of the classes that occur: a head has no use for others."""
    if missing := int((images.labels == UNLABELLED).sum()):
        raise DataError(
            f"set {images.name!r}: {missing} of {len(images)} images have no class; folds are drawn by class"
        )
    present = np.unique(images.labels)
    if len(present) == len(images.class_names):
        return images
    return restrict(images, [images.class_names[label] for label in present])
