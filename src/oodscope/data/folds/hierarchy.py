"""A class hierarchy, read from the columns of two tables."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.data.folds.dealing import Codes, encode
from oodscope.data.folds.dual import known_classes


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
