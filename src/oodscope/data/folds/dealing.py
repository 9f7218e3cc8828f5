"""Dealing like cards: everything sorted by group, then one to each pile in turn.

Groups lie one after the other, so the next group starts at the pile where the last one stopped. That alone gives both
balances at once: of every group, and of everything together, no two piles differ by more than one. A group of fewer
than K items reaches as many different piles as it has items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError

Codes = NDArray[np.int64]


def encode(values: ArrayLike, what: str) -> tuple[NDArray[np.generic], Codes]:
    """The distinct values in sorted order, and the number of each entry's value.

    Parameters
    ----------
    values : numbers or text, one per row; a missing one (None, NaN, empty text) is an error.
    what : they are, for the message: ``"ID classes"``.
    """
    column = np.asarray(values)
    if column.ndim != 1:
        raise DataError(f"{what} must be one column, not an array of shape {column.shape}")
    if len(column) == 0:
        raise DataError(f"{what}: no rows")
    if column.dtype == object:
        missing = np.array([value is None or value != value or value == "" for value in column])
    elif column.dtype.kind == "f":
        missing = np.isnan(column)
    else:
        missing = column == "" if column.dtype.kind in "US" else np.zeros(0, bool)
    if missing.any():
        raise DataError(f"{what}: {missing.sum()} of {len(column)} rows have none, the first is row {missing.argmax()}")
    try:
        distinct, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise DataError(f"{what}: numbers and text in one column; use one of the two") from error
    return distinct, codes.astype(np.int64)


def in_groups(levels: Sequence[Codes], rng: np.random.Generator | None) -> NDArray[np.int64]:
    """All items, group by group: groups in random order, and so the items of each group.

    Parameters
    ----------
    levels : the group of each item, from coarse to fine; the finer groups of one coarse group lie side by side.
    rng : None keeps the order of group numbers, and in a group that of the items.
    """
    order = np.arange(len(levels[0]))
    if rng is not None:
        levels = [rng.permutation(int(level.max()) + 1)[level] for level in levels]
        rng.shuffle(order)
    return order[np.lexsort([level[order] for level in reversed(levels)])]


def deal(levels: Sequence[Codes], piles: int, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """The pile of each item, dealt in turn along ``in_groups`` from a random pile on.

    So every item falls on every pile with probability 1/K, also where K does not divide the number of items. Without
    ``rng`` the first pile is dealt to first.
    """
    order = in_groups(levels, rng)
    start = 0 if rng is None else int(rng.integers(piles))
    pile = np.empty(len(order), dtype=np.int64)
    pile[order] = (start + np.arange(len(order))) % piles
    return pile


def hold_out(levels: Sequence[Codes], share: Fraction, rng: np.random.Generator | None) -> NDArray[np.bool_]:
    """A share of the items of every group: the floor or the ceiling of it, and of all n items floor(share n).

    Along ``in_groups`` item i is taken where floor(share i) grows, i from 1. Then every group of ``levels[0]`` with two
    items or more gets one taken and keeps one, and a group of one item keeps it.
    """
    order = in_groups(levels, rng)
    n, coarse = len(order), levels[0][order]
    steps = np.arange(n + 1) * share.numerator // share.denominator
    taken = np.diff(steps) > 0
    if share > 0:
        first = np.flatnonzero(np.diff(coarse, prepend=-1))
        size = np.diff(first, append=n)
        count = np.add.reduceat(taken, first, dtype=np.int64)
        taken[first[(count == 0) & (size > 1)]] = True
        taken[first[count == size]] = False
    chosen = np.zeros(n, dtype=bool)
    chosen[order] = taken
    return chosen


Share = str | float | Fraction
"""A part of a whole: a fraction, decimal text, or a float that stands for the simple fraction nearest to it."""


def exact_share(share: Share) -> Fraction:
    """The fraction meant by ``share``: ``0.29`` of 100 are 29, which floating point would make 28.

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
