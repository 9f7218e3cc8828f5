"""What a metric reads off a walk, as objects: a bootstrap that knows the reading has a shorter way than the walk."""

from __future__ import annotations

from dataclasses import dataclass

from oodscope.metrics.ranking.walk import Walk
from oodscope.metrics.scores import FloatArray


@dataclass(frozen=True)
class RocArea:
    """:meth:`Walk.auroc`."""

    def __call__(self, walk: Walk) -> FloatArray:
        return walk.auroc()


@dataclass(frozen=True)
class PrecisionArea:
    """:meth:`Walk.average_precision`, or :meth:`Walk.average_precision_at` a prevalence of the positives."""

    prevalence: float | None = None

    def __call__(self, walk: Walk) -> FloatArray:
        return walk.average_precision() if self.prevalence is None else walk.average_precision_at(self.prevalence)

    def negative_weight(self, n_positive: float, n_negative: float) -> float:
        """The weight of a negative when a positive weighs one."""
        if self.prevalence is None:
            return 1.0
        return (1.0 - self.prevalence) / self.prevalence * n_positive / n_negative


@dataclass(frozen=True)
class FprAtTpr:
    """:meth:`Walk.fpr_at_tpr`."""

    tpr: float

    def __call__(self, walk: Walk) -> FloatArray:
        return walk.fpr_at_tpr(self.tpr)


@dataclass(frozen=True)
class TprAtFpr:
    """:meth:`Walk.tpr_at_fpr`."""

    fpr: float

    def __call__(self, walk: Walk) -> FloatArray:
        return walk.tpr_at_fpr(self.fpr)


Reading = RocArea | PrecisionArea | FprAtTpr | TprAtFpr
"""Readings that a bootstrap gathers step by step."""
