"""CrossvalFold: one way to train and test, on known images and on outliers."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError

_KINDS = ("folds", "hold_out", "half")
_PARTS = ("id", "ood", "val")


@dataclass(frozen=True)
class Draw:
    """One repetition's random streams: a pure function of seed and repetition.

    Each part has a stream of its own. So the ID folds are the same whatever they are tested against, and a network
    trained on them serves every OOD set.

    Parameters
    ----------
    seed, repetition : 0 or larger.
    kind : a hold-out does not repeat what the folds of the same repetition draw, nor do halves of a set.
    shuffle : without it nothing is drawn, and everything is dealt in the order it has.
    """

    seed: int
    repetition: int
    kind: Literal["folds", "hold_out", "half"] = "folds"
    shuffle: bool = True

    def __post_init__(self) -> None:
        if self.seed < 0 or self.repetition < 0:
            raise DataError(f"seed and repetition must not be negative: {self.seed}, {self.repetition}")

    def stream(self, part: Literal["id", "ood", "val"], fold: int = 0) -> np.random.Generator | None:
        """The numbers for one part of the work."""
        if not self.shuffle:
            return None
        return np.random.default_rng([self.seed, self.repetition, _KINDS.index(self.kind), _PARTS.index(part), fold])


Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CrossvalFold:
    """Row numbers into an ID set and into an OOD set, for one fold of one repetition.

    A fold that leaks cannot be made: a row stands in one field only, and a class of outliers that is trained on
    (outlier exposure) is not tested. The constructor looks, whoever calls it.

    Parameters
    ----------
    repetition, number : of the whole partition, and of the fold within it, both from 0.
    id_train, id_val, id_test : rows of the ID set. ``id_val`` is for early stopping and thresholds; it comes out of the
        training folds, so that nothing is chosen on tested images.
    ood_train, ood_test : rows of the OOD set. A detector without outlier exposure leaves ``ood_train`` alone.
    ood_classes : the class number of every row of the OOD set, tested or not.
    """

    repetition: int
    number: int
    id_train: Rows
    id_val: Rows
    id_test: Rows
    ood_train: Rows
    ood_test: Rows
    ood_classes: Rows = field(repr=False)

    def __post_init__(self) -> None:
        where = f"fold {self.number} of repetition {self.repetition}"
        for name in ("id_train", "id_test", "ood_test"):
            if len(getattr(self, name)) == 0:
                raise DataError(f"{where}: {name} is empty")
        _once(f"{where}: ID row", (self.id_train, self.id_val, self.id_test))
        _once(f"{where}: OOD row", (self.ood_train, self.ood_test))
        both = np.intersect1d(self.ood_train_classes, self.ood_test_classes)
        if len(both):
            raise DataError(f"{where}: OOD class {both[0]} is both trained on and tested")

    @property
    def ood_train_classes(self) -> Rows:
        """The classes of outliers that may be trained on, by number."""
        return self._classes_of(self.ood_train)

    @property
    def ood_test_classes(self) -> Rows:
        """The classes of outliers that are tested, by number."""
        return self._classes_of(self.ood_test)

    def _classes_of(self, rows: Rows) -> Rows:
        return np.flatnonzero(np.bincount(self.ood_classes[rows]))


def _once(what: str, parts: tuple[Rows, ...]) -> None:
    """Raise if a row is negative, or stands twice in one part or in two."""
    rows = np.concatenate(parts)
    if len(rows) == 0:
        return
    if rows.min() < 0:
        raise DataError(f"{what} {rows.min()} is not a row")
    counts = np.bincount(rows)
    if counts.max() > 1:
        raise DataError(f"{what} {counts.argmax()} is used {counts.max()} times")
