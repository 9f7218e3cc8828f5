"""Folds by class and by hierarchy as scikit-learn splitters: anything that takes ``cv`` takes them."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator

from oodscope.base.errors import DataError
from oodscope.data.folds.crossval import join, known_classes, outlier_classes
from oodscope.data.folds.fold import CrossvalFold, Draw
from oodscope.data.folds.hierarchical import Hierarchy, fold_hierarchy

Split = tuple[NDArray[np.int64], NDArray[np.int64]]


class _Splitter(BaseCrossValidator):  # type: ignore[misc]  # scikit-learn is untyped
    """What both have in common: their folds become indices into one table of known rows and outliers."""

    __metadata_request__split = {"groups": True}

    n_splits: int
    shuffle: bool
    random_state: int | None
    with_outliers: bool

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """K, whatever the data."""
        return self.n_splits

    def _draw(self) -> Draw:
        seed = self.random_state
        if seed is None:
            seed = int(np.random.default_rng().integers(2**63))
        return Draw(seed, 0, shuffle=self.shuffle)

    def _indices(self, fold: CrossvalFold, is_ood: NDArray[np.bool_]) -> Split:
        known, outliers = np.flatnonzero(~is_ood), np.flatnonzero(is_ood)
        trained = [known[fold.id_train], *[outliers[fold.ood_train]] * self.with_outliers]
        tested = [known[fold.id_test], outliers[fold.ood_test]]
        return np.sort(np.concatenate(trained)), np.sort(np.concatenate(tested))


class CrossvalKFold(_Splitter):
    """K folds of a table that holds known rows and outliers: DCV-ROOD for anything that takes a splitter.

    Known rows are divided class by class, as by ``StratifiedKFold``; outliers by whole classes, as by ``GroupKFold``.
    Every test holds both. ::

        cross_val_score(detector, X, y, groups=is_ood, cv=CrossvalKFold(5, random_state=0), scoring=auroc)

    Parameters
    ----------
    n_splits : K.
    shuffle : without it rows and classes are dealt in the order they have.
    random_state : a seed; None draws anew at every ``split``.
    with_outliers : train on the outliers of the other folds too (outlier exposure), whose classes are never tested.
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = True,
        random_state: int | None = None,
        with_outliers: bool = False,
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.with_outliers = with_outliers

    def split(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Iterator[Split]:
        """Indices of the rows to train on and of the rows to test on, fold by fold.

        Parameters
        ----------
        X : not looked at.
        y : the class of each row, of outliers too.
        groups : True (or 1) for each row that is an outlier.
        """
        classes = _column(y, "y")
        if groups is None:
            raise DataError(
                "CrossvalKFold.split needs groups: True for each row that is an outlier, False for known rows"
            )
        is_ood = _mask(groups, len(classes))
        both = np.intersect1d(classes[is_ood], classes[~is_ood])
        if len(both):
            raise DataError(f"class {both.tolist()[0]!r} has known rows and outliers; a class is one or the other")
        ood, levels = outlier_classes(classes[is_ood])
        for fold in join([known_classes(classes[~is_ood])], ood, levels, self.n_splits, self._draw(), 0):
            yield self._indices(fold, is_ood)


class HierarchicalKFold(_Splitter):
    """K folds of one table with a class hierarchy, some of whose classes are outliers (Algorithm 3 of DCV-ROOD).

    ``hierarchical_choice`` draws the outliers from every stratum (Algorithm 2). A stratum with fewer outlier classes
    than folds is missing from some tests; a ``UserWarning`` says from which. ::

        cross_val_score(detector, X, species, groups=genus, cv=HierarchicalKFold(["husky", "owl"], 2), scoring=auroc)

    Parameters
    ----------
    ood_classes : the values of ``y`` that are outliers.
    n_splits, shuffle, random_state, with_outliers : as in ``CrossvalKFold``.
    strict : a stratum that misses a fold is an error.
    """

    def __init__(
        self,
        ood_classes: ArrayLike,
        n_splits: int = 5,
        *,
        shuffle: bool = True,
        random_state: int | None = None,
        with_outliers: bool = False,
        strict: bool = False,
    ) -> None:
        self.ood_classes = ood_classes
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.with_outliers = with_outliers
        self.strict = strict

    def split(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Iterator[Split]:
        """Indices of the rows to train on and of the rows to test on, fold by fold.

        Parameters
        ----------
        X : not looked at.
        y : the class of each row.
        groups : the stratum of each row, one level above its class; or two columns, the stratum and the deepest class
            known of it.
        """
        classes = _column(y, "y")
        if groups is None:
            raise DataError("HierarchicalKFold.split needs groups: the stratum of each row, one level above its class")
        columns = np.asarray(groups)
        columns = columns[:, None] if columns.ndim == 1 else columns
        if columns.ndim != 2 or columns.shape[1] > 2 or len(columns) != len(classes):
            raise DataError(f"groups must be one or two columns of {len(classes)} rows, not of shape {columns.shape}")
        is_ood = self._outliers(classes)
        deepest = columns[~is_ood, 1] if columns.shape[1] == 2 else None
        hierarchy = Hierarchy.read(classes[~is_ood], classes[is_ood], columns[is_ood, 0], columns[~is_ood, 0], deepest)
        made = fold_hierarchy(hierarchy, self.n_splits, self._draw(), 0, strict=self.strict)
        for warning in made.warnings:
            warnings.warn(warning, UserWarning, stacklevel=2)
        for fold in made.folds:
            yield self._indices(fold, is_ood)

    def _outliers(self, classes: NDArray[Any]) -> NDArray[np.bool_]:
        named = np.unique(np.asarray(self.ood_classes))
        unknown = named[~np.isin(named, classes)]
        if len(unknown):
            raise DataError(f"ood_classes names {unknown.tolist()[0]!r}, which is not a class of y")
        return np.isin(classes, named)


def _column(values: ArrayLike, what: str) -> NDArray[Any]:
    column = np.asarray(values)
    if column.ndim != 1:
        raise DataError(f"{what} must be one column, not an array of shape {column.shape}")
    return column


def _mask(groups: ArrayLike, rows: int) -> NDArray[np.bool_]:
    mask = _column(groups, "groups")
    if len(mask) != rows:
        raise DataError(f"groups has {len(mask)} rows where y has {rows}")
    if not np.isin(mask, [False, True]).all():
        raise DataError("groups marks outliers with True or 1, known rows with False or 0; it holds other values")
    return mask.astype(bool)
