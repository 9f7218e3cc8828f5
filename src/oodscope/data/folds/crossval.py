"""Folds of a cross-validation: ID images split within classes, outliers by whole classes (DCV-ROOD, Algorithm 1).

Urrea-Castaño et al., DCV-ROOD Evaluation Framework: Dual Cross-Validation for Robust Out-of-Distribution Detection,
arXiv 2509.05778.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.data.folds.dealing import Codes, Share, deal, encode, exact_share, hold_out
from oodscope.data.folds.fold import CrossvalFold, Draw


def crossval_folds(
    id_labels: ArrayLike,
    ood_classes: ArrayLike,
    *,
    folds: int = 5,
    repetition: int = 0,
    seed: int = 0,
    val_share: Share = 0.2,
    stratified: bool = True,
) -> list[CrossvalFold]:
    """K folds of an ID set and of an OOD set, joined fold by fold.

    Fold k tests on the ID images of pile k and on the OOD classes of pile k; it trains on the other piles, with outlier
    exposure on the other OOD classes too. In no fold is a tested class of outliers trained on.

    Parameters
    ----------
    id_labels : the class of each ID image.
    ood_classes : the class of each OOD image, in classes of its own. A class is never divided.
    folds : K; no more than there are OOD classes.
    repetition, seed : the draw is a pure function of both.
    val_share : of the training images of each class, exactly; at least one image of every class that has two.
    stratified : deal every ID class evenly: its counts in two folds differ by one at most. Without it images are dealt
        regardless of class.
    """
    sides = _sides(id_labels, ood_classes, stratified)
    return join(*sides, folds, Draw(seed, repetition), val_share, stratified=stratified)


def crossval_hold_out(
    id_labels: ArrayLike,
    ood_classes: ArrayLike,
    *,
    folds: int = 5,
    repetition: int = 0,
    seed: int = 0,
    val_share: Share = 0.2,
    stratified: bool = True,
) -> CrossvalFold:
    """One split that tests a K-th of the ID images, class by class, and a K-th of the OOD classes.

    What the benchmark truth repeats a hundred times. It is the first of K folds from a draw of its own, independent of
    that of ``crossval_folds``. Where K does not divide a number, it is rounded up or down at random, so that every
    image and every class is tested with probability 1/K. Parameters as there.
    """
    sides = _sides(id_labels, ood_classes, stratified)
    draw = Draw(seed, repetition, "hold_out")
    (fold,) = join(*sides, folds, draw, val_share, stratified=stratified, numbers=(0,))
    return fold


def _sides(id_labels: ArrayLike, ood_classes: ArrayLike, stratified: bool) -> tuple[list[Codes], Codes, list[Codes]]:
    """The columns of both sides as ``join`` takes them, each checked."""
    return [known_classes(id_labels, stratified=stratified)], *outlier_classes(ood_classes)


def join(
    id_levels: Sequence[Codes],
    ood_classes: Codes,
    ood_levels: Sequence[Codes],
    folds: int,
    draw: Draw,
    val_share: Share,
    *,
    stratified: bool = True,
    numbers: Iterable[int] | None = None,
) -> list[CrossvalFold]:
    """Deal ID rows and OOD classes, and join the piles fold by fold.

    Parameters
    ----------
    id_levels : the class of each ID row, then its finer classes if it has any.
    ood_classes : the class number of each OOD row.
    ood_levels : the groups of each OOD *class*, from coarse to fine.
    numbers : the folds that are wanted; all by default.
    """
    _check_count(folds, len(id_levels[0]), len(ood_levels[0]))
    share = exact_share(val_share)
    if share == 1:
        raise DataError("val_share is 1: no ID image would be left to train on")
    groups = id_levels if stratified else [np.zeros_like(id_levels[0])]
    id_pile = deal(groups, folds, draw.stream("id"))
    ood_pile = deal(ood_levels, folds, draw.stream("ood"))[ood_classes]
    joined = []
    for number in range(folds) if numbers is None else numbers:
        training = np.flatnonzero(id_pile != number)
        held = hold_out([level[training] for level in id_levels], share, draw.stream("val", number))
        joined.append(
            CrossvalFold(
                draw.repetition,
                number,
                id_train=training[~held],
                id_val=training[held],
                id_test=np.flatnonzero(id_pile == number),
                ood_train=np.flatnonzero(ood_pile != number),
                ood_test=np.flatnonzero(ood_pile == number),
                ood_classes=ood_classes,
            )
        )
    return joined


def known_classes(labels: ArrayLike, *, stratified: bool = True) -> Codes:
    """The class number of each ID row, of two classes or more that can be divided."""
    classes, codes = encode(labels, "ID classes")
    if len(classes) < 2:
        raise DataError(f"the ID set holds one class only, {classes[0]!s}; a classifier to judge needs at least two")
    lone = np.flatnonzero(np.bincount(codes) < 2)
    if stratified and len(lone):
        raise DataError(
            f"ID class {str(classes[lone[0]])!r} has one image ({len(lone)} such classes); a class needs two, one to "
            "train on and one to test"
        )
    return codes


def _check_count(folds: int, id_images: int, ood_classes: int) -> None:
    """Raise if there is not enough of anything for so many folds."""
    if folds < 2:
        raise DataError(f"cross-validation needs at least 2 folds, not {folds}")
    if ood_classes < 2:
        raise DataError("the OOD set holds one class only, which cannot be divided; folds need at least two")
    if folds > ood_classes:
        raise DataError(
            f"{folds} folds need {folds} OOD classes, one to test in each; there are {ood_classes}. "
            f"Use folds={ood_classes} or fewer"
        )
    if folds > id_images:
        raise DataError(f"{folds} folds of {id_images} ID images: use folds={id_images} or fewer")


def outlier_classes(classes: ArrayLike) -> tuple[Codes, list[Codes]]:
    """The class of each OOD row, and one group that all classes lie in."""
    distinct, codes = encode(classes, "OOD classes")
    return codes, [np.zeros(len(distinct), dtype=np.int64)]
