"""From two image sets to folds, once nothing speaks against it."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError, did_you_mean
from oodscope.data.folds.crossval import crossval_folds, crossval_hold_out
from oodscope.data.folds.dealing import deal
from oodscope.data.folds.fold import CrossvalFold, Draw
from oodscope.data.folds.hierarchical import HierarchicalFolds, hierarchical_folds, hierarchical_hold_out
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.similarity.classnames import overlapping_classes


def repeated_rows(id_set: ImageSet, ood_set: ImageSet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ID rows and the OOD rows that have to go, so that no image stands on two sides of any fold.

    Of equal ID images the first stays: folds divide a class, so two copies may be parted. An OOD image goes if it is an
    ID image too, or stands under an earlier OOD class as well. Copies within one OOD class always travel together and
    stay. Images are compared by content digest, which is of pixels for arrays and of bytes for files.
    """
    known: set[bytes] = set()
    id_rows = []
    for row, digest in enumerate(id_set.digests()):
        if digest in known:
            id_rows.append(row)
        known.add(digest)
    class_of: dict[bytes, int] = {}
    ood_rows = []
    for row, (digest, label) in enumerate(zip(ood_set.digests(), ood_set.labels.tolist())):
        if digest in known or class_of.setdefault(digest, label) != label:
            ood_rows.append(row)
    return np.array(id_rows, dtype=np.int64), np.array(ood_rows, dtype=np.int64)


def refuse_repeats(
    id_set: ImageSet, ood_set: ImageSet, id_rows: NDArray[np.int64], ood_rows: NDArray[np.int64]
) -> None:
    """Raise if there are any, naming the first."""
    found = []
    if len(id_rows):
        first = id_set.sample_ids()[id_rows[0]]
        found.append(f"{len(id_rows)} in the ID set {id_set.name!r} repeat an earlier one (the first: {first})")
    if len(ood_rows):
        first = ood_set.sample_ids()[ood_rows[0]]
        found.append(
            f"{len(ood_rows)} in the OOD set {ood_set.name!r} are ID images too, or stand under two OOD classes "
            f"(the first: {first})"
        )
    if found:
        raise DataError(
            f"equal images could be trained on and tested: {'; '.join(found)}. Remove them, or duplicates='drop'"
        )


class FoldPlan(StrictModel):
    """Everything that decides the folds of two sets, but the sets and the repetition.

    Parameters
    ----------
    folds : K.
    seed : of all draws.
    val_share : of the training images of each ID class that go to validation, exactly.
    stratified : deal every ID class evenly over the folds; without it images are dealt regardless of class.
    level : of the hierarchy, one above the classes, such as ``superclass``: OOD classes are then dealt within each of
        its groups, the strata. None folds flat.
    deepest : level of the hierarchy below the classes, where there is one: ID images are dealt evenly there.
    strict : a stratum that misses the test of a fold is an error instead of a note.
    duplicates : what to do with equal images that could be trained on and tested: ``error`` stops, ``drop`` leaves out
        all but the first (an ID image before an OOD image) and notes how many.
    """

    folds: int = Field(default=5, ge=2)
    seed: int = Field(default=0, ge=0)
    val_share: float | str = 0.2
    stratified: bool = True
    level: str | None = None
    deepest: str | None = None
    strict: bool = False
    duplicates: Literal["error", "drop"] = "error"


@dataclass(frozen=True, eq=False)
class FoldedSets:
    """Two sets that were looked over, and their folds for any repetition. ``fold_sets`` makes it.

    Rows in the folds are rows of the sets as they were given, and class numbers index ``ood_set.class_names``. An image
    that was dropped is in no fold.

    Parameters
    ----------
    id_set, ood_set : the sets.
    plan : how they are folded.
    id_rows, ood_rows : the rows that the folds share out.
    notes : what a reader of the results should know.
    """

    id_set: ImageSet
    ood_set: ImageSet
    plan: FoldPlan
    id_rows: NDArray[np.int64] = field(repr=False)
    ood_rows: NDArray[np.int64] = field(repr=False)
    notes: tuple[str, ...]

    def folds(self, repetition: int = 0) -> list[CrossvalFold]:
        """The K folds of one repetition."""
        if self.plan.level is not None:
            return list(self.hierarchical(repetition).folds)
        made = crossval_folds(**self._classes(), **self._draw(repetition), stratified=self.plan.stratified)
        return [self._in_whole_sets(fold) for fold in made]

    def hierarchical(self, repetition: int = 0) -> HierarchicalFolds:
        """The K folds with the coverage of the strata, for sets that are folded by a ``level``."""
        level = self.plan.level
        if level is None:
            raise DataError("these sets are folded without a level: there are no strata to cover")
        id_strata = self.id_set.hierarchy[level][self.id_rows]
        made = hierarchical_folds(
            **self._classes(), **self._draw(repetition), id_strata=id_strata, strict=self.plan.strict
        )
        return replace(made, folds=tuple(self._in_whole_sets(fold) for fold in made.folds))

    def hold_out(self, repetition: int = 0) -> CrossvalFold:
        """One split of the size of a fold, from a draw of its own."""
        if self.plan.level is not None:
            return self._in_whole_sets(hierarchical_hold_out(**self._classes(), **self._draw(repetition)))
        made = crossval_hold_out(**self._classes(), **self._draw(repetition), stratified=self.plan.stratified)
        return self._in_whole_sets(made)

    def halves(self) -> tuple["FoldedSets", "FoldedSets"]:
        """The same sets twice, each with one half of the images of every class, drawn by the plan's seed.

        The half of an ID set does not depend on the OOD set.
        """
        draw = Draw(self.plan.seed, 0, "half")
        rows = {}
        for side, images, whole in (("id", self.id_set, self.id_rows), ("ood", self.ood_set, self.ood_rows)):
            classes = np.unique(images.labels[whole], return_inverse=True)[1]
            pile = deal([classes], 2, draw.stream("id" if side == "id" else "ood"))
            rows[side] = [whole[pile == number] for number in (0, 1)]
        first, second = (
            replace(self, id_rows=known, ood_rows=outliers) for known, outliers in zip(rows["id"], rows["ood"])
        )
        return first, second

    def _classes(self) -> dict[str, Any]:
        """The classes of the rows in use, and their strata where there are any."""
        columns: dict[str, Any] = {
            "id_labels": self.id_set.labels[self.id_rows],
            "ood_classes": self.ood_set.labels[self.ood_rows],
        }
        if self.plan.level is not None:
            columns["ood_strata"] = self.ood_set.hierarchy[self.plan.level][self.ood_rows]
            if self.plan.deepest is not None:
                columns["id_deepest"] = self.id_set.hierarchy[self.plan.deepest][self.id_rows]
        return columns

    def _draw(self, repetition: int) -> dict[str, Any]:
        plan = self.plan
        return {"folds": plan.folds, "repetition": repetition, "seed": plan.seed, "val_share": plan.val_share}

    def _in_whole_sets(self, fold: CrossvalFold) -> CrossvalFold:
        known = {name: self.id_rows[getattr(fold, name)] for name in ("id_train", "id_val", "id_test")}
        outliers = {name: self.ood_rows[getattr(fold, name)] for name in ("ood_train", "ood_test")}
        return replace(fold, **known, **outliers, ood_classes=self.ood_set.labels)


def fold_sets(id_set: ImageSet, ood_set: ImageSet, plan: FoldPlan | None = None) -> FoldedSets:
    """Look two sets over and fold them.

    Refused are images without a class, a class that is known and an outlier by name, and (``plan.duplicates``) equal
    images that could be trained on and tested. Everything else that makes folds impossible, such as more folds than OOD
    classes, is found by dealing the first repetition.

    Parameters
    ----------
    id_set, ood_set : two sets, or two parts of one (``data.folds.hierarchical_choice`` finds the classes of each).
    plan : five folds, flat, by default.
    """
    plan = plan or FoldPlan()
    for images in (id_set, ood_set):
        _refuse_unlabelled(images)
    _refuse_levels(id_set, ood_set, plan)
    notes = _compare_names(id_set, ood_set)
    id_repeats, ood_repeats = repeated_rows(id_set, ood_set)
    if plan.duplicates == "error":
        refuse_repeats(id_set, ood_set, id_repeats, ood_repeats)
    for images, rows, why in (
        (id_set, id_repeats, "repeat an earlier one"),
        (ood_set, ood_repeats, "are ID images too, or stand under two OOD classes"),
    ):
        if len(rows):
            notes.append(f"{len(rows)} of {len(images)} images of {images.name!r} left out: they {why}")
    folded = FoldedSets(
        id_set,
        ood_set,
        plan,
        np.setdiff1d(np.arange(len(id_set)), id_repeats),
        np.setdiff1d(np.arange(len(ood_set)), ood_repeats),
        (),
    )
    if plan.level is None:
        folded.folds()
    else:
        notes += _strata_notes(folded, plan.level)
    return replace(folded, notes=tuple(notes))


def _refuse_unlabelled(images: ImageSet) -> None:
    missing = int((images.labels == UNLABELLED).sum())
    if missing:
        raise DataError(
            f"set {images.name!r}: {missing} of {len(images)} images have no class; folds divide ID images by class, "
            "outliers by whole classes"
        )


def _refuse_levels(id_set: ImageSet, ood_set: ImageSet, plan: FoldPlan) -> None:
    if plan.level is None and plan.deepest is not None:
        raise DataError(f"deepest={plan.deepest!r} needs a level: name the one above the classes too")
    if plan.level is not None and not plan.stratified:
        raise DataError(f"level={plan.level!r} folds a hierarchy, which is always stratified")
    for level, images in ((plan.level, id_set), (plan.level, ood_set), (plan.deepest, id_set)):
        if level is not None and level not in images.hierarchy:
            known = ", ".join(images.hierarchy) or "none"
            raise DataError(
                f"set {images.name!r} has no level {level!r} of classes.{did_you_mean(level, images.hierarchy)} "
                f"It has: {known}"
            )


def _compare_names(id_set: ImageSet, ood_set: ImageSet) -> list[str]:
    """Refuse a class that both sets hold; a note where the classes have only numbers for names."""
    unnamed = [images.name for images in (id_set, ood_set) if _is_counted(images)]
    if unnamed and id_set.source is not ood_set.source:
        return [f"classes of {unnamed[0]!r} are numbers: whether ID classes are among the outliers was not checked"]
    known, outliers = (
        [images.class_names[label] for label in np.unique(images.labels)] for images in (id_set, ood_set)
    )
    for overlap in overlapping_classes(known, outliers, None):
        if overlap.relation == "same name":
            raise DataError(
                f"the class {overlap.ood_class!r} of the OOD set {ood_set.name!r} is the class {overlap.id_class!r} of "
                f"the ID set {id_set.name!r}; a class is known or an outlier, remove it from one of the two"
            )
    return []


def _is_counted(images: ImageSet) -> bool:
    return images.class_names == tuple(str(number) for number in range(len(images.class_names)))


def _strata_notes(folded: FoldedSets, level: str) -> list[str]:
    """What is the same in every repetition: strata that cannot be in every fold, or stand on one side only."""
    first = folded.hierarchical()
    notes = []
    short = int((first.coverage == 0).any(axis=1).sum())
    if short:
        notes.append(
            f"{short} of {len(first.strata)} groups of {level!r} have fewer OOD classes than the {folded.plan.folds} "
            "folds: not every fold tests them"
        )
    for side, images in (("OOD", folded.ood_set), ("ID", folded.id_set)):
        there = {str(group) for group in np.unique(images.hierarchy[level])}
        if absent := [group for group in first.strata if group not in there]:
            these = f"{len(absent)} of {len(first.strata)} groups of {level!r}"
            notes.append(f"{these} have no {side} class: {', '.join(absent)}")
    return notes
