"""Metrics of many bootstrap replicates, gathered while pieces of their walks pass by."""

from typing import NamedTuple, Protocol

import numpy as np

from oodscope.metrics.ranking.readings import FprAtTpr, PrecisionArea, Reading, RocArea
from oodscope.metrics.ranking.walk import Walk, least_count, most_count
from oodscope.metrics.resampling.draws import Workspace
from oodscope.metrics.scores import FloatArray

_TINY = np.finfo(np.float64).tiny


class Piece(NamedTuple):
    """Some successive steps of the walks of many replicates, ``[step, replicate]``; fields as in :class:`Walk`.

    ``fp_before`` is right only where a tally needs it; ``weighted`` is ``gained * tp``, which several do.
    """

    gained: FloatArray
    tp: FloatArray
    fp: FloatArray
    fp_before: FloatArray
    weighted: FloatArray


class Tally(Protocol):
    """One metric of every replicate."""

    def add(self, piece: Piece, workspace: Workspace) -> None:
        """Take the next steps into account."""

    def value(self) -> FloatArray:
        """The metric, after the last step."""


def tally_of(reading: Reading, walk: Walk, replicates: int) -> Tally:
    """What gathers a reading of replicates of this walk."""
    if isinstance(reading, RocArea):
        return RocTally(walk, replicates)
    if isinstance(reading, PrecisionArea):
        return PrecisionTally(reading, walk, replicates)
    if isinstance(reading, FprAtTpr):
        return FprTally(reading.tpr, walk, replicates)
    return TprTally(reading.fpr, walk, replicates)


class RocTally:
    """:meth:`Walk.auroc`: twice the pairs in the wrong order are whole numbers, so their sum is exact."""

    def __init__(self, walk: Walk, replicates: int) -> None:
        self._pairs = 2.0 * walk.n_positive * walk.n_negative
        self._passed = np.zeros(replicates)

    def add(self, piece: Piece, workspace: Workspace) -> None:
        both = np.add(piece.fp, piece.fp_before, out=workspace.array("flagged", piece.fp.shape))
        self._passed += _dot(piece.gained, both)

    def value(self) -> FloatArray:
        return (self._pairs - self._passed) / self._pairs


class PrecisionTally:
    """:meth:`Walk.average_precision`, also at a prevalence."""

    def __init__(self, reading: PrecisionArea, walk: Walk, replicates: int) -> None:
        self._weight = reading.negative_weight(walk.n_positive, walk.n_negative)
        self._n_positive = walk.n_positive
        self._sum = np.zeros(replicates)

    def add(self, piece: Piece, workspace: Workspace) -> None:
        flagged = workspace.array("flagged", piece.tp.shape)
        if self._weight == 1.0:
            np.add(piece.tp, piece.fp, out=flagged)
        else:
            np.multiply(piece.fp, self._weight, out=flagged)
            np.add(flagged, piece.tp, out=flagged)
        if not flagged[0].all():
            # nothing flagged means nothing gained: any number but zero will do
            np.maximum(flagged, _TINY, out=flagged)
        self._sum += _sum(np.divide(piece.weighted, flagged, out=flagged))

    def value(self) -> FloatArray:
        return self._sum / self._n_positive


class FprTally:
    """:meth:`Walk.fpr_at_tpr`: false positives only grow, so the least of all steps with enough true ones is wanted."""

    def __init__(self, tpr: float, walk: Walk, replicates: int) -> None:
        self._enough = least_count(tpr, walk.n_positive)
        self._n_negative = walk.n_negative
        self._fp = np.full(replicates, np.inf)

    def add(self, piece: Piece, workspace: Workspace) -> None:
        if piece.tp[-1].max() < self._enough or np.isfinite(self._fp).all():
            return
        reached = np.where(piece.tp >= self._enough, piece.fp, np.inf)
        np.minimum(self._fp, reached.min(axis=0), out=self._fp)

    def value(self) -> FloatArray:
        return self._fp / self._n_negative


class TprTally:
    """:meth:`Walk.tpr_at_fpr`: true positives only grow, so the most of all steps with few false ones is wanted."""

    def __init__(self, fpr: float, walk: Walk, replicates: int) -> None:
        self._most = most_count(fpr, walk.n_negative)
        self._n_positive = walk.n_positive
        self._tp = np.zeros(replicates)

    def add(self, piece: Piece, workspace: Workspace) -> None:
        if piece.fp[-1].max() <= self._most:
            np.copyto(self._tp, piece.tp[-1])
        elif piece.fp[0].min() <= self._most:
            allowed = np.where(piece.fp <= self._most, piece.tp, 0.0)
            np.maximum(self._tp, allowed.max(axis=0), out=self._tp)

    def value(self) -> FloatArray:
        return self._tp / self._n_positive


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("kr,kr->r", a, b))


_TOGETHER = 2**13
"""Numbers in one product of :func:`_sum`: BLAS would hand more to threads of its own, which wait for one another
while every processor has a thread of the bootstrap already."""


def _sum(rows: FloatArray) -> FloatArray:
    # products with ones are twice as fast as a sum down the columns
    height = max(1, _TOGETHER // rows.shape[1])
    whole = len(rows) // height * height
    sums = np.matmul(np.ones((1, height)), rows[:whole].reshape(-1, height, rows.shape[1])).sum(axis=(0, 1))
    return np.asarray(sums if whole == len(rows) else sums + np.ones(len(rows) - whole) @ rows[whole:])
