r"""Selective prediction: accept the most familiar images first, and watch how many failures come along.

A failure is an image that the classifier gets wrong, or an OOD one. At a threshold, the coverage is the share of
images accepted, the selective risk the share of failures among those, the generalised risk the share of failures
accepted among all. Larger score = more OOD = accepted later; equal scores are accepted together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from oodscope.base.errors import DataError
from oodscope.metrics.rejection.rejection import check_correct
from oodscope.metrics.scores import FloatArray, IntArray, check_scores

Counts = NDArray[np.uint8]

_BLOCK = 2**15  # counts in a block of replicates: 256 kB of float64, which a core's cache holds several times


@dataclass(frozen=True)
class Acceptance:
    """Counts met while the threshold rises through the distinct scores, most familiar first.

    The last axis is the walk; leading axes, if any, are bootstrap replicates. A replicate may gain nothing at a step:
    it repeats the one before it and changes no metric.

    Parameters
    ----------
    gained : images that each step accepts.
    gained_failures : those among them that are failures.
    """

    gained: FloatArray
    gained_failures: FloatArray

    @cached_property
    def accepted(self) -> FloatArray:
        """Images accepted up to and including each step; the last entry is n."""
        return np.asarray(np.cumsum(self.gained, axis=-1))

    @cached_property
    def failures(self) -> FloatArray:
        """Failures among them."""
        return np.asarray(np.cumsum(self.gained_failures, axis=-1))

    @cached_property
    def risk(self) -> FloatArray:
        """Selective risk at each step."""
        return np.asarray(self.failures / np.maximum(self.accepted, np.finfo(np.float64).tiny))

    @property
    def n(self) -> FloatArray:
        """All images."""
        return np.asarray(self.accepted[..., -1])

    @property
    def n_failures(self) -> FloatArray:
        """All failures."""
        return np.asarray(self.failures[..., -1])

    def aurc(self) -> FloatArray:
        r"""Area under the risk-coverage steps, :math:`\sum_k (c_k - c_{k-1}) r_k` (Geifman et al., ICLR 2019).

        Without ties it is the mean selective risk over the n coverages. It weighs failures by how early they come,
        the earliest ones very heavily.
        """
        return np.asarray(_dot(self.gained, self.risk) / self.n)

    def e_aurc(self) -> FloatArray:
        r"""AURC above that of the best possible order of the same images (Geifman et al., ICLR 2019).

        The best order accepts the n - m successes first, so with harmonic numbers :math:`H`
        :math:`\mathrm{AURC}^* = \frac{1}{n}\left(m - (n - m)(H_n - H_{n-m})\right)`, exactly and not only for large n.
        """
        n, m = self.n, self.n_failures
        between = digamma(n + 1.0) - digamma(n - m + 1.0)
        return np.asarray(self.aurc() - (m - (n - m) * between) / n)

    def augrc(self) -> FloatArray:
        r"""Area under the generalised-risk-coverage line (Traub et al., NeurIPS 2024), between 0 and 1/2.

        The chance that of two images drawn at random the first is a failure and is accepted when the threshold stands
        at the second, a tie counting half. With accuracy :math:`a` and the failure-detection AUROC it is

        .. math:: (1 - \mathrm{AUROC}_f)\, a (1 - a) + \tfrac{1}{2} (1 - a)^2,

        ties included: the straight line across a tied step is the mean over the orders of its images.
        """
        n, m = self.n, self.n_failures
        return np.asarray((2.0 * m * (n - m) - self._twice_above() + m**2) / (2.0 * n**2))

    def auroc_failure(self) -> FloatArray:
        """Chance that a failure scores above a success, a tie counting half; NaN where one of the two is missing."""
        pairs = np.asarray(2.0 * self.n_failures * (self.n - self.n_failures))
        return np.asarray(np.divide(self._twice_above(), pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0))

    def oracle_der(self) -> FloatArray:
        """The smallest DER of any threshold, rejecting all and accepting all included."""
        # accepting one more success mends a mistake, accepting one more failure makes one
        change = 2.0 * self.failures
        change -= self.accepted
        return np.asarray((self.n - self.n_failures + np.minimum(change.min(axis=-1), 0.0)) / self.n)

    def coverage_at_risk(self, risk: float) -> FloatArray:
        """The largest coverage whose selective risk is at most ``risk``; 0 where there is none."""
        if not 0.0 <= risk <= 1.0:
            raise DataError(f"a selective risk lies between 0 and 1; it is {risk}")
        allowed = (self.risk <= risk) & (self.accepted > 0)
        last = allowed.shape[-1] - 1 - allowed[..., ::-1].argmax(axis=-1)
        reached = np.take_along_axis(self.accepted, last[..., None], axis=-1)[..., 0] / self.n
        return np.where(allowed.any(axis=-1), reached, 0.0)

    def _twice_above(self) -> FloatArray:
        """Twice the pairs of a failure above a success, a tied pair counting once.

        Failures above images of any kind, less failures above failures; the latter are m squared by symmetry.
        """
        above = 2.0 * _dot(self.gained_failures, self.accepted) - _dot(self.gained_failures, self.gained)
        return np.asarray(above - self.n_failures**2)


class Selection:
    """How a detector orders one labelled population, sorted once.

    Parameters
    ----------
    scores : one per image, larger = more OOD.
    correct : whether the classifier's prediction is right; false throughout for OOD images.
    """

    def __init__(self, scores: ArrayLike, correct: ArrayLike) -> None:
        checked = check_scores(scores, "scores")
        self._order = np.argsort(checked, kind="stable")
        ascending = checked[self._order]
        self._failed = (~check_correct(correct, checked.size))[self._order].astype(np.float64)
        self._first = np.append(0, np.flatnonzero(ascending[1:] != ascending[:-1]) + 1)
        self.acceptance = self._walk(np.ones(checked.size))

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """The risk-coverage curve: coverage and selective risk at each distinct score."""
        return self.acceptance.accepted / self.acceptance.n, self.acceptance.risk

    def resampled(self, counts: Counts) -> Acceptance:
        """The walks of bootstrap replicates, given ``[r, i]``: how often replicate r drew image i."""
        return self._walk(counts[:, self._order].astype(np.float64))

    def weighted(self, weights: FloatArray) -> Acceptance:
        """The walk of images with these weights, in the order of the images; of rows, their walks."""
        return self._walk(weights[..., self._order])

    def replicates(self, counts: Counts) -> dict[str, FloatArray]:
        """Every metric of ``SELECTIVE`` for each row of ``counts``, in blocks that a core's cache holds."""
        values = {name: np.empty(len(counts)) for name in SELECTIVE}
        rows = max(1, _BLOCK // self._order.size)
        for start in range(0, len(counts), rows):
            block = self.resampled(counts[start : start + rows])
            for name, of in SELECTIVE.items():
                values[name][start : start + rows] = of(block)
        return values

    def points(self) -> dict[str, float]:
        """Every metric of ``SELECTIVE``; NaN where it is not defined."""
        return {name: float(of(self.acceptance)) for name, of in SELECTIVE.items()}

    def _walk(self, drawn: FloatArray) -> Acceptance:
        failed = drawn * self._failed
        if self._first.size < self._order.size:
            drawn, failed = (np.add.reduceat(each, self._first, axis=-1) for each in (drawn, failed))
        return Acceptance(drawn, failed)


def weighted_acceptance(score: FloatArray, correct: NDArray[np.bool_], weights: FloatArray) -> Acceptance:
    """The walk of images that weigh ``weights`` instead of one each."""
    return Selection(score, correct).weighted(weights)


def draw_counts(draws: Iterator[IntArray], n: int, replicates: int) -> Counts:
    """How often each of n images occurs in each of the next draws of ``resamples``, one byte each."""
    counts = np.empty((replicates, n), dtype=np.uint8)
    for row, draw in enumerate(islice(draws, replicates)):
        counts[row] = np.minimum(np.bincount(draw, minlength=n), 255)
    return counts


def _coverage_at_risk5(acceptance: Acceptance) -> FloatArray:
    return acceptance.coverage_at_risk(0.05)


SELECTIVE: dict[str, Callable[[Acceptance], FloatArray]] = {
    "augrc": Acceptance.augrc,
    "aurc": Acceptance.aurc,
    "e_aurc": Acceptance.e_aurc,
    "auroc_failure": Acceptance.auroc_failure,
    "coverage_at_risk5": _coverage_at_risk5,
    "der_oracle": Acceptance.oracle_der,
}
"""The metrics that need no threshold, by the names of result rows."""


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...k,...k->...", a, b))
