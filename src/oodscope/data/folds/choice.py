"""Which classes become outliers: an exact share of every stratum (Algorithm 2 of DCV-ROOD)."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError
from oodscope.data.folds.dealing import encode

Share = str | float | Fraction
"""A part of a whole: a fraction, decimal text, or a float that stands for the simple fraction nearest to it."""


def exact_share(share: Share) -> Fraction:
    """The fraction that a person means by ``share``: ``0.29`` of 100 are 29, which floating point would make 28.

    A float is read as it is printed and taken for the nearest fraction of denominator up to a million, so that ``1/3``
    is a third.
    """
    try:
        exact = Fraction(str(share)).limit_denominator(1_000_000)
    except (ValueError, ZeroDivisionError) as error:
        raise DataError(f"a share is a fraction or a decimal number such as 0.2 or 1/3, not {share!r}") from error
    if not 0 <= exact <= 1:
        raise DataError(f"a share lies between 0 and 1, not at {share}")
    return exact


@dataclass(frozen=True, eq=False)
class ClassChoice:
    """Which classes are known and which are outliers.

    Parameters
    ----------
    id, ood : positions in the sequence of classes, in increasing order.
    warnings : the strata that gave no outlier.
    """

    id: NDArray[np.int64]
    ood: NDArray[np.int64]
    warnings: tuple[str, ...]


def hierarchical_choice(strata_of_class: ArrayLike, share: Share, seed: int, *, min_one: bool = False) -> ClassChoice:
    """Draw floor(p N) classes as outliers from every stratum of N classes, so that both sides hold every stratum.

    Parameters
    ----------
    strata_of_class : the stratum of each class: its group one level above the classification.
    share : p, computed exactly (``exact_share``).
    seed : of the draw.
    min_one : draw one class where the floor is 0. A stratum of one class is then an error: none would stay known.
    """
    strata, codes = encode(strata_of_class, "strata of the classes")
    part = exact_share(share)
    rng = np.random.default_rng(seed)
    drawn: list[int] = []
    bare: list[str] = []
    for number, stratum in enumerate(strata.tolist()):
        members = rng.permutation(np.flatnonzero(codes == number))
        count = int(part * len(members))
        if count == 0 and min_one:
            count = 1
        if count == len(members):
            raise DataError(f"stratum {stratum!r}: {count} of its {count} classes as outliers leave no known class")
        if count == 0:
            bare.append(f"{stratum} ({len(members)})")
        drawn += members[:count].tolist()
    if not drawn:
        largest = int(np.bincount(codes).max())
        raise DataError(
            f"a share of {part} of at most {largest} classes per stratum is less than one class: no outlier is left. "
            "Take a larger share, or min_one=True"
        )
    warnings = (f"no outlier class from {len(bare)} of {len(strata)} strata: {', '.join(bare)}",) if bare else ()
    ood = np.sort(np.array(drawn, dtype=np.int64))
    return ClassChoice(np.setdiff1d(np.arange(len(codes)), ood), ood, warnings)
