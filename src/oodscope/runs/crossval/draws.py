"""Draws: which rows of a pair train, validate and test, in the order in which they are worked off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.base.hashing import fingerprint
from oodscope.data.folds.fold import CrossvalFold
from oodscope.data.folds.sets import FoldedSets, fold_sets
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.public.selection import restrict
from oodscope.runs.crossval.plan import CrossValidationPlan


@dataclass(frozen=True, eq=False)
class Pair:
    """Two pools of images that folds are drawn from.

    Parameters
    ----------
    id_set : every image that may train or test the classifier, with labels.
    ood_set : outliers with classes of their own: a fold tests on classes that it did not learn from.
    level : a level of the sets' hierarchy, such as ``"superclass"``, if every fold shall hold OOD classes of every
        one of its strata, as far as there are enough.
    deepest : with a level, another one below the classes, at which ID images are dealt evenly.
    """

    id_set: ImageSet
    ood_set: ImageSet
    level: str | None = None
    deepest: str | None = None

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

    made = [replace(pair, id_set=found(pair.id_set), ood_set=found(pair.ood_set)) for pair in pairs]
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


Rows = NDArray[np.int64]


class TrainingRows(NamedTuple):
    """What one training sees: rows of the ID set to learn from and to be stopped by, outliers if any, and its seed.

    ``place`` is a folder of its own, where a long training may keep what it needs to go on after it was killed.
    """

    train: Rows
    val: Rows
    seed: int
    outliers: Rows | None = None
    place: Path | None = None


@dataclass(frozen=True)
class Draw:
    """One division of a pair's images.

    Parameters
    ----------
    kind : a ``fold`` of a cross-validation, a ``hold_out`` of the benchmark truth, or a ``crossed`` hold-out.
    repetition : of the cross-validation or hold-out; a number of its own for each crossed hold-out.
    fold : 0 unless the kind is ``fold``.
    id_draw, ood_draw : the repetition that ID images and OOD classes are drawn as.
    training_seed : which of several trainings on the same rows.
    """

    kind: Literal["fold", "hold_out", "crossed"]
    repetition: int
    fold: int = 0
    id_draw: int = 0
    ood_draw: int = 0
    training_seed: int = 0

    @property
    def name(self) -> str:
        """Unique in a plan, and good for a file."""
        return f"{self.kind}-{self.repetition:03d}-{self.fold}"

    def seed(self, plan: CrossValidationPlan) -> int:
        """Of the training: another one for every draw of a plan, the same for all pairs."""
        if self.kind == "crossed":
            parts: list[int | str] = [self.kind, self.training_seed]
        else:
            parts = [self.kind, self.repetition, self.fold]
        return int(fingerprint([plan.seed, *parts])[:8], 16)


def all_draws(plan: CrossValidationPlan) -> Iterator[Draw]:
    """Every draw of a plan: whole repetitions first, then the truth, then the crossed design."""
    for repetition, fold in product(range(plan.repetitions), range(plan.folds)):
        yield Draw("fold", repetition, fold)
    for repetition in range(plan.hold_outs):
        yield Draw("hold_out", repetition)
    if plan.variance_design is not None:
        cells = product(*map(range, plan.variance_design))
        for number, (id_draw, ood_draw, training_seed) in enumerate(cells):
            yield Draw("crossed", number, 0, id_draw, ood_draw, training_seed)


class Divisions:
    """The rows of every draw of some pairs. Made once all pairs were looked over (``fold_sets``).

    The rows of an ID set do not depend on the OOD set, so that pairs can share a network. With ``disjoint_truth`` every
    pair is halved: folds are of the first half, hold-outs in turn of the first and of the second.
    """

    def __init__(self, plan: CrossValidationPlan, pairs: Sequence[Pair]) -> None:
        self._folded = {
            pair: fold_sets(pair.id_set, pair.ood_set, plan.fold_plan(pair.level, pair.deepest)) for pair in pairs
        }
        self._disjoint = plan.disjoint_truth
        self._halves = {
            pair: _halved(pair, folded) if plan.disjoint_truth else (folded, folded)
            for pair, folded in self._folded.items()
        }
        self._folds = lru_cache(maxsize=4 * len(pairs))(lambda pair, number: self._halves[pair][0].folds(number))
        self._hold_out = lru_cache(maxsize=64)(lambda pair, number: self._halves[pair][number % 2].hold_out(number))

    def of(self, pair: Pair, draw: Draw) -> CrossvalFold:
        """The rows of one draw of one pair."""
        if draw.kind == "fold":
            return self._folds(pair, draw.repetition)[draw.fold]
        if draw.kind == "hold_out":
            return self._hold_out(pair, draw.repetition)
        # of the half that the folds are of
        step = 2 if self._disjoint else 1
        id_fold, ood_fold = (self._hold_out(pair, step * number) for number in (draw.id_draw, draw.ood_draw))
        return replace(id_fold, ood_train=ood_fold.ood_train, ood_test=ood_fold.ood_test)

    def notes(self) -> list[str]:
        """What a reader should know of the folds of each pair."""
        return [f"{pair.name}: {note}" for pair, folded in self._folded.items() for note in folded.notes]


def _halved(pair: Pair, folded: FoldedSets) -> tuple[FoldedSets, FoldedSets]:
    """Both halves of a pair, each found to be large enough."""
    halves = folded.halves()
    try:
        for half in halves:
            half.folds()
    except DataError as error:
        raise DataError(
            f"{pair.name}: half of the images is too little for a truth of its own ({error}); take the truth from the "
            "same images, or fewer folds"
        ) from error
    return halves
