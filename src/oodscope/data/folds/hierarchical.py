"""Hierarchical folds: outlier classes dealt within each stratum of a class hierarchy (Algorithm 3 of DCV-ROOD)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError
from oodscope.data.folds.crossval import join, known_classes
from oodscope.data.folds.dealing import Codes, Share, encode
from oodscope.data.folds.fold import CrossvalFold, Draw


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The columns as numbers.

    Parameters
    ----------
    known : of each ID row, its class and then its deepest class, where that is known.
    outliers : of each OOD row, its class.
    strata_of_class : of each OOD class, its stratum.
    strata : their names, in sorted order; some may have ID classes only.
    """

    known: list[Codes]
    outliers: Codes
    strata_of_class: Codes
    strata: tuple[str, ...]

    @classmethod
    def read(
        cls,
        id_labels: ArrayLike,
        ood_classes: ArrayLike,
        ood_strata: ArrayLike,
        id_strata: ArrayLike | None = None,
        id_deepest: ArrayLike | None = None,
    ) -> "Hierarchy":
        """From numbers or text; a class in two strata is an error."""
        known = [known_classes(id_labels)]
        if id_deepest is not None:
            known.append(_beside(id_deepest, known[0], "deepest ID classes"))
        if id_strata is not None:
            _beside(id_strata, known[0], "ID strata")
        classes, outliers = encode(ood_classes, "OOD classes")
        _beside(ood_strata, outliers, "OOD strata")
        both = np.asarray(ood_strata) if id_strata is None else np.concatenate([ood_strata, id_strata])
        strata, codes = encode(both, "strata")
        stratum = codes[: len(outliers)]
        of_class = np.zeros(len(classes), dtype=np.int64)
        of_class[outliers] = stratum
        torn = np.flatnonzero(of_class[outliers] != stratum)
        if len(torn):
            torn_class = outliers[torn[0]]
            one, two = (str(strata[code]) for code in (stratum[torn[0]], of_class[torn_class]))
            raise DataError(f"OOD class {str(classes[torn_class])!r} lies in two strata, {one!r} and {two!r}")
        return cls(known, outliers, of_class, tuple(str(name) for name in strata))

    @property
    def ood_levels(self) -> list[Codes]:
        """What OOD classes are dealt by: the strata that have any, so that the others do not change the draw."""
        return [np.unique(self.strata_of_class, return_inverse=True)[1]]


def _beside(column: ArrayLike, classes: Codes, what: str) -> Codes:
    """A column as numbers, of as many rows as the classes."""
    codes = encode(column, what)[1]
    if len(codes) != len(classes):
        raise DataError(f"{what}: {len(codes)} rows where the classes have {len(classes)}")
    return codes


@dataclass(frozen=True, eq=False)
class HierarchicalFolds:
    """Folds, and which strata each of them tests.

    Parameters
    ----------
    folds : the folds in order.
    strata : in sorted order.
    coverage : ``[strata, folds]``: how many outlier classes of a stratum a fold tests. A 0 is a fold whose test never
        asks about that part of the hierarchy.
    warnings : in words, one per kind of fault.
    """

    folds: tuple[CrossvalFold, ...]
    strata: tuple[str, ...]
    coverage: NDArray[np.int64]
    warnings: tuple[str, ...]


def hierarchical_folds(
    id_labels: ArrayLike,
    ood_classes: ArrayLike,
    ood_strata: ArrayLike,
    *,
    id_strata: ArrayLike | None = None,
    id_deepest: ArrayLike | None = None,
    folds: int = 5,
    repetition: int = 0,
    seed: int = 0,
    val_share: Share = 0.2,
    strict: bool = False,
) -> HierarchicalFolds:
    """K folds that keep the hierarchy: every ID subclass in every fold, every stratum of outliers in as many as it can.

    The paper deals each stratum's OOD classes into K folds, which needs K of them (its own experiment has one). Here a
    stratum starts where the one before stopped: with fewer than K classes it reaches as many folds as it has classes,
    all folds test equally many classes, and what is missed is said.

    Parameters
    ----------
    id_labels : the class of each ID image, at the level of classification.
    ood_classes : the class of each OOD image at the same level. A class is never divided.
    ood_strata : the stratum of each OOD image: its group one level above.
    id_strata : the stratum of each ID image: one without any OOD class then shows in the coverage too.
    id_deepest : the deepest class known of each ID image, where it is deeper than the classification. Folds are even
        there, and in ``id_labels`` too.
    folds, repetition, seed, val_share : as in ``crossval_folds``.
    strict : a stratum that misses a fold is an error.
    """
    hierarchy = Hierarchy.read(id_labels, ood_classes, ood_strata, id_strata, id_deepest)
    return fold_hierarchy(hierarchy, folds, Draw(seed, repetition), val_share, strict=strict)


def hierarchical_hold_out(
    id_labels: ArrayLike,
    ood_classes: ArrayLike,
    ood_strata: ArrayLike,
    *,
    id_deepest: ArrayLike | None = None,
    folds: int = 5,
    repetition: int = 0,
    seed: int = 0,
    val_share: Share = 0.2,
) -> CrossvalFold:
    """One split that tests a K-th of the ID images and a K-th of the OOD classes, spread over the strata.

    From a stratum of N classes the floor or the ceiling of N/K are tested. Parameters as in ``hierarchical_folds``.
    """
    read = Hierarchy.read(id_labels, ood_classes, ood_strata, id_deepest=id_deepest)
    draw = Draw(seed, repetition, "hold_out")
    (fold,) = join(read.known, read.outliers, read.ood_levels, folds, draw, val_share, numbers=(0,))
    return fold


def fold_hierarchy(
    hierarchy: Hierarchy, folds: int, draw: Draw, val_share: Share, *, strict: bool
) -> HierarchicalFolds:
    """The folds of a hierarchy that was read, with what they cover."""
    joined = join(hierarchy.known, hierarchy.outliers, hierarchy.ood_levels, folds, draw, val_share)
    coverage = np.zeros((len(hierarchy.strata), folds), dtype=np.int64)
    for fold in joined:
        np.add.at(coverage[:, fold.number], hierarchy.strata_of_class[fold.ood_test_classes], 1)
    warnings = (*_missed(hierarchy.strata, coverage), *_lone(hierarchy.known))
    if strict and (coverage == 0).any():
        raise DataError(warnings[0])
    return HierarchicalFolds(tuple(joined), hierarchy.strata, coverage, warnings)


def _missed(strata: tuple[str, ...], coverage: NDArray[np.int64]) -> list[str]:
    """The sentence that says which strata miss which folds."""
    short = np.flatnonzero((coverage == 0).any(axis=1))
    if len(short) == 0:
        return []
    listed = [f"{strata[row]} ({', '.join(map(str, np.flatnonzero(coverage[row] == 0)))})" for row in short]
    return [
        f"{len(short)} of {len(strata)} strata have fewer OOD classes than the {coverage.shape[1]} folds and are not "
        f"tested in the folds in brackets: {'; '.join(listed)}"
    ]


def _lone(known: list[Codes]) -> list[str]:
    """A subclass of one image is never trained on in the fold that tests it: the model may take it for an outlier."""
    if len(known) == 1:
        return []
    alone = int((np.unique(np.stack(known), axis=1, return_counts=True)[1] == 1).sum())
    said = f"{alone} of the deepest ID classes have one image: the fold that tests it has none of its kind in training"
    return [said] * (alone > 0)
