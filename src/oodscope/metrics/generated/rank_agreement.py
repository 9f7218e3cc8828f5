r"""Do two benchmarks rank detectors alike? Kendall's rank correlation, and how sure one can be of it.

Of all pairs of rows, count those that both columns order alike, less those they order oppositely; with ties
(Kendall, Biometrika 1945)

.. math:: \tau_b = \frac{\sum_{i<j} \mathrm{sign}(a_i - a_j)\, \mathrm{sign}(b_i - b_j)}
          {\sqrt{\#\{a_i \ne a_j\} \cdot \#\{b_i \ne b_j\}}} .

Rows are detectors, or detectors on several networks. Then a benchmark may order the networks well and their detectors
badly: most pairs are of different networks, and a large τ over all rows says little about the choice of a detector.
:func:`kendall_within` looks at pairs of one network only.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.interval import Interval, check_level
from oodscope.metrics.ranking.clusters import FEWEST as FEWEST_CLUSTERS
from oodscope.metrics.scores import FloatArray, check_scores

FEWEST_ROWS = 8
"""Rows below which an interval says next to nothing: at 8 it is still about 1 wide on a scale from -1 to 1."""


def kendall(a: ArrayLike, b: ArrayLike) -> float:
    """Kendall's τ_b of two columns: 1 for the same order, -1 for the opposite one.

    Parameters
    ----------
    a, b : a metric on two benchmarks, row by row; larger must mean the same in both.
    """
    return _Pairs(*_columns(a, b)).tau()


@dataclass(frozen=True)
class WithinGroups:
    """Agreement about rows of the same group.

    Parameters
    ----------
    pooled : τ_b over the pairs of rows that share a group.
    groups : τ_b of each group alone; NaN where it has one row, or a column does not vary.
    """

    pooled: float
    groups: Mapping[Hashable, float]


def kendall_within(a: ArrayLike, b: ArrayLike, groups: Sequence[Hashable]) -> WithinGroups:
    """Kendall's τ_b among rows of one group, such as the detectors of one network.

    Parameters
    ----------
    a, b : as for :func:`kendall`.
    groups : the group of each row.
    """
    first, second = _columns(a, b)
    names, index = _numbered(groups, first.size, "group")
    pooled = _Pairs(first, second, index[:, None] == index).tau()
    rows = [index == number for number in range(len(names))]
    return WithinGroups(pooled, {name: _Pairs(first[own], second[own]).tau_or_nan() for name, own in zip(names, rows)})


def kendall_interval(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    *,
    seed: int = 0,
    replicates: int = 1000,
) -> Interval:
    """Bootstrap interval of :func:`kendall`: for other rows, or for other clusters of rows.

    Rows of one network err together, so if other networks are meant the networks are to be resampled. A row drawn
    twice is tied with its copy, which τ_b leaves out; so are pairs between the copies of a cluster. The interval is the
    middle ``level`` of the replicates; those in which a column does not vary have no order and are left out. Where all
    rows agree (τ = 1) it is a point: no resample can show a disagreement that the rows do not have.

    Parameters
    ----------
    a, b : as for :func:`kendall`; at least 8 rows.
    clusters : the cluster of each row, such as its network; at least 5 of them. By default each row stands alone.
    """
    check_level(level)
    first, second = _columns(a, b)
    if first.size < FEWEST_ROWS:
        raise DataError(
            f"an interval of Kendall's tau over {first.size} rows says next to nothing (it needs {FEWEST_ROWS}); "
            "add detectors or networks, or state tau without an interval"
        )
    pairs = _Pairs(first, second)
    pairs.tau()
    names, index = _numbered(clusters if clusters is not None else range(first.size), first.size, "cluster")
    if len(names) < FEWEST_CLUSTERS:
        raise DataError(
            f"{len(names)} clusters have too little spread to resample (it needs {FEWEST_CLUSTERS}); "
            "add networks, or resample rows and say so"
        )
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(names), np.full(len(names), 1.0 / len(names)), size=replicates)
    values = pairs.resampled(drawn.astype(np.float64), index)
    tail = (1.0 - level) / 2.0
    low, high = np.nanquantile(values, [tail, 1.0 - tail])
    unit = "rows" if clusters is None else "clusters"
    return Interval(float(low), float(high), level, f"bootstrap-{unit}-{replicates}")


class _Pairs:
    """Every pair of rows: +1 or -1 where a column orders it, 0 where it does not or the pair does not count."""

    def __init__(self, a: FloatArray, b: FloatArray, counts: NDArray[np.bool_] | None = None) -> None:
        self._a, self._b = (np.sign(column[:, None] - column) for column in (a, b))
        if counts is not None:
            self._a, self._b = self._a * counts, self._b * counts

    def tau(self) -> float:
        value = self.tau_or_nan()
        if np.isnan(value):
            raise DataError("Kendall's tau needs two columns that vary: all rows (of a group) are equal in one of them")
        return value

    def tau_or_nan(self) -> float:
        ordered = float(np.abs(self._a).sum() * np.abs(self._b).sum())
        return float(np.sum(self._a * self._b)) / sqrt(ordered) if ordered > 0.0 else nan

    def resampled(self, drawn: FloatArray, cluster: NDArray[np.intp]) -> FloatArray:
        """τ_b of each replicate, given ``[replicate, cluster]``: how often it drew each; NaN where it has no order."""
        agree, in_a, in_b = (
            _drawn_sums(pairs, drawn, cluster) for pairs in (self._a * self._b, np.abs(self._a), np.abs(self._b))
        )
        ordered = np.sqrt(in_a * in_b)
        return np.asarray(np.divide(agree, ordered, out=np.full(len(drawn), np.nan), where=ordered > 0.0))


def _drawn_sums(pairs: FloatArray, drawn: FloatArray, cluster: NDArray[np.intp]) -> FloatArray:
    """``[replicate]``: the sum over the pairs of rows that each replicate holds.

    A cluster drawn w times brings w times the pairs within it. Pairs between its own copies do not count; to
    make up for them, and keep the shares of pairs within and between clusters what they are in the sample, those
    between two of K clusters count K / (K - 1) times.
    """
    count = drawn.shape[1]
    member = np.eye(count)[cluster]
    between = member.T @ pairs @ member
    within = np.diag(between).copy()
    np.fill_diagonal(between, 0.0)
    return np.asarray(drawn @ within + np.sum(drawn @ between * drawn, axis=1) * (count / (count - 1.0)))


def _columns(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = check_scores(a, "the first column"), check_scores(b, "the second column")
    if first.size != second.size:
        raise DataError(f"two columns of the same rows are compared; they have {first.size} and {second.size} rows")
    if first.size < 2:
        raise DataError("an order needs at least 2 rows; there is 1")
    return first, second


def _numbered(names: Sequence[Hashable], rows: int, kind: str) -> tuple[list[Hashable], NDArray[np.intp]]:
    if len(names) != rows:
        raise DataError(f"every row needs its {kind}: there are {rows} rows and {len(names)} names")
    distinct = list(dict.fromkeys(names))
    number = {name: index for index, name in enumerate(distinct)}
    return distinct, np.array([number[name] for name in names], dtype=np.intp)
