"""The image sets of one training, checked before anything expensive happens."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.training.recipe import Recipe, TrainingFacts


@dataclass(frozen=True)
class Sets:
    """Images to learn from, images to judge by, outliers and further pictures where the recipe wants them."""

    train: ImageSet
    val: ImageSet | None
    ood: ImageSet | None
    pictures: ImageSet | None = None


def check_sets(
    recipe: Recipe,
    train: ImageSet,
    val: ImageSet | None,
    ood_train: ImageSet | None,
    pictures: ImageSet | None = None,
) -> Sets:
    """The sets that this recipe will use, or one line that says why it cannot."""
    if recipe.labelled:
        _check_labels(train, val)
    if len(train) % recipe.renderings:
        raise DataError(
            f"set {train.name!r}: {len(train)} images are no {recipe.renderings} renderings of each picture; "
            "list all pictures, then all of the second rendering, and so on"
        )
    what = "accuracy" if recipe.labelled else "loss"
    if recipe.patience and val is None:
        raise DataError(f"patience={recipe.patience} stops by validation {what}: give a val set, or patience=0")
    if recipe.keep == "best" and val is None:
        raise DataError(f"keep='best' chooses by validation {what}: give a val set, or keep='last'")
    wants_pictures = recipe.augment.wants_pictures
    if wants_pictures and pictures is None:
        kinds = ", ".join(part.kind for part in recipe.augment.parts() if part.wants_pictures)
        raise DataError(f"augmentation {kinds} mixes with further pictures, but there is no pictures set")
    if recipe.ood_batch_size and ood_train is None:
        raise DataError(f"{type(recipe).__name__} learns from outliers, but there is no ood_train set")
    return Sets(train, val, ood_train if recipe.ood_batch_size else None, pictures if wants_pictures else None)


def _check_labels(train: ImageSet, val: ImageSet | None) -> None:
    for images in (train, val):
        if images is not None and (missing := int((images.labels == UNLABELLED).sum())):
            raise DataError(f"set {images.name!r}: {missing} of {len(images)} images have no label")
    if len(np.unique(train.labels)) < 2:
        raise DataError(f"set {train.name!r} shows one class only; a classifier needs at least two")
    if val is not None and val.class_names != train.class_names:
        raise DataError(f"sets {train.name!r} and {val.name!r} have different classes")


def facts_of(sets: Sets, preprocess: Preprocess) -> TrainingFacts:
    """What a recipe may know of these sets."""
    train = sets.train
    return TrainingFacts(
        class_names=train.class_names,
        n_train=len(train),
        size=preprocess.size,
        n_ood=len(sets.ood) if sets.ood else 0,
        hierarchy={level: _groups(train, column) for level, column in train.hierarchy.items()},
        channels=len(preprocess.mean),
    )


def _groups(images: ImageSet, column: NDArray[Any]) -> tuple[str, ...]:
    """The group of each class by a column of the hierarchy; empty where it has none, or several."""
    pairs = {(int(label), str(group)) for label, group in zip(images.labels, column)}
    groups: dict[int, list[str]] = {}
    for label, group in pairs:
        groups.setdefault(label, []).append(group)
    single = {label: names[0] for label, names in groups.items() if len(names) == 1}
    return tuple(single.get(number, "") for number in range(len(images.class_names)))


def check_apart(outliers: ImageSet, others: Iterable[tuple[str, ImageSet]]) -> None:
    """Refuse outliers that are also images of another role, or of its classes: what is trained on cannot be a test.

    Classes are compared by name where they have names; numbers alone say nothing.

    Parameters
    ----------
    others : role and set, such as ``benchmark.members()`` without ``ood_train``.
    """
    learnt = set(outliers.digests())
    for role, images in others:
        shared = sum(digest in learnt for digest in images.digests())
        if shared:
            raise DataError(
                f"{shared} of {len(images)} images of {role} set {images.name!r} are among the training outliers "
                f"{outliers.name!r}: take them out of one of the two"
            )
        both = _named(outliers) & _named(images) if role in ("near", "far", "ood_val") else set()
        if both:
            raise DataError(
                f"class {min(both)!r} of {role} set {images.name!r} is also one of the training outliers "
                f"{outliers.name!r} ({len(both)} such): take these classes out of one of the two"
            )


def _named(images: ImageSet) -> set[str]:
    """Names of the classes that a set shows, numbers left out."""
    shown = {images.class_names[label] for label in np.unique(images.labels) if label != UNLABELLED}
    return {name.casefold() for name in shown if not name.isdecimal()}
