r"""Does a cheap experiment find the differences that an expensive one finds? Hit and error rates of DCV-ROOD.

With :math:`c_{ij}` the number of repetitions (of R) in which detectors i and j differ significantly, and
:math:`p_{ij}` the p-value of the truth,

.. math:: \text{hit} = \frac{\sum_{p_{ij} \le \alpha} c_{ij}}{\#\{p_{ij} \le \alpha\}}, \qquad
          \text{error} = \frac{\sum_{p_{ij} > \alpha} c_{ij}}{\#\{p_{ij} > \alpha\}},

both from 0 to R, over unordered pairs. They do not look at the sign of a difference, so a repetition that finds the
loser significantly better counts as a hit; :class:`Directions` does look.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.cells import PairTests


@dataclass(frozen=True)
class Rate:
    """A sum over some pairs: ``total / pairs``, kept as whole numbers so that the fraction is exact."""

    total: int
    pairs: int

    @property
    def value(self) -> float:
        """The mean over the pairs; NaN if there are none."""
        return float(Fraction(self.total, self.pairs)) if self.pairs else nan

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.total}/{self.pairs})" if self.pairs else "–"


@dataclass(frozen=True)
class HitsAndErrors:
    """The two rates of DCV-ROOD at one alpha."""

    hits: Rate
    errors: Rate


@dataclass(frozen=True)
class Directions:
    """What the repetitions say of the pairs that differ in truth: one count for each pair and repetition.

    Parameters
    ----------
    same : significant, and the same detector is better.
    opposite : significant, and the other one is better.
    silent : not significant.
    """

    same: int
    opposite: int
    silent: int

    @property
    def share(self) -> float:
        """The share that agrees; NaN where no pair differs in truth."""
        total = self.same + self.opposite + self.silent
        return self.same / total if total else nan


def significance_counts(repetitions: Sequence[PairTests], alpha: float) -> NDArray[np.int64]:
    """How many of the repetitions find each pair significantly different, ``p <= alpha``; 0 on the diagonal."""
    found = np.asarray(sum((tests.p <= alpha).astype(np.int64) for tests in repetitions))
    np.fill_diagonal(found, 0)
    return found


def hits_and_errors(truth_p: ArrayLike, counts: ArrayLike, alpha: float) -> HitsAndErrors:
    """Hit and error rate from the p-values of the truth and the counts of the repetitions.

    Parameters
    ----------
    truth_p, counts : square and symmetric, a row and a column per detector.
    alpha : a pair differs in truth iff its p is at most this; the counts must have been made with the same one.
    """
    p, found = np.asarray(truth_p, dtype=np.float64), np.asarray(counts)
    if p.ndim != 2 or p.shape[0] != p.shape[1] or p.shape != found.shape:
        raise DataError(f"p-values and counts are square and alike; their shapes are {p.shape} and {found.shape}")
    if (p != p.T).any() or (found != found.T).any():
        raise DataError("p-values and counts of unordered pairs are symmetric; these are not")
    pairs = np.triu_indices(len(p), 1)
    differ = p[pairs] <= alpha
    rates = [Rate(int(found[pairs][chosen].sum()), int(chosen.sum())) for chosen in (differ, ~differ)]
    return HitsAndErrors(*rates)


def directions(truth: PairTests, repetitions: Sequence[PairTests], alpha: float) -> Directions:
    """Whether the repetitions find the same winner, over the pairs that differ in truth."""
    pairs = np.triu_indices(len(truth.p), 1)
    differ = truth.p[pairs] <= alpha
    same = opposite = silent = 0
    for tests in repetitions:
        found = tests.p[pairs][differ] <= alpha
        agrees = tests.direction[pairs][differ] == truth.direction[pairs][differ]
        same += int(np.sum(found & agrees))
        opposite += int(np.sum(found & ~agrees))
        silent += int(np.sum(~found))
    return Directions(same, opposite, silent)
