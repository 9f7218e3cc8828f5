"""The protocol of dual cross-validation: train on some OOD classes, evaluate on others, over folds of both."""

from typing import TYPE_CHECKING

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import CROSSVAL
from oodscope.protocols.base import Protocol
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable

if TYPE_CHECKING:
    from oodscope.data.benchmark import Benchmark


class CrossValidated(Protocol):
    """Metrics of every fold; measured by a cross-validation, which trains a network for each."""

    name, title = "cross_validation", "Cross-validation"
    summary = "Train on some classes, evaluate on others, over folds of both."
    position = 4
    metrics, headline = CROSSVAL, ("auroc",)
    negatives, groups = (), {}

    def measure(self, scores: ScoreTable) -> Measurements:
        raise DataError("folds are measured by a cross-validation; use oodscope.cross_validate")

    def check(self, benchmark: "Benchmark") -> None:
        raise DataError("folds are made by a cross-validation; use oodscope.cross_validate or `oodscope crossval`")
