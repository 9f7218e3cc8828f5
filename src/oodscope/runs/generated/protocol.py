"""The protocol of generated sets: calibration of networks beside the separation of sets (Mukhoti et al. 2022)."""

from typing import TYPE_CHECKING

from oodscope.base.errors import DataError
from oodscope.base.paper import Paper
from oodscope.metrics.catalog import ACCURACY, AUROC, CALIBRATION
from oodscope.protocols.base import Protocol
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable

if TYPE_CHECKING:
    from oodscope.data.benchmark import Benchmark


class Generated(Protocol):
    """Detectors and calibration on generated sets beside real ones; measured by a study of generated sets."""

    name, title = "generated", "Generated"
    summary = "Images made by generators, near the ID classes or shifted away from them."
    paper = Paper(
        "Raising the Bar on the Evaluation of Out-of-Distribution Detection",
        "Mukhoti et al.",
        "arXiv 2209.11960",
    )
    position = 6
    metrics, headline = (AUROC, *CALIBRATION, ACCURACY), ("auroc",)
    negatives = ()

    def measure(self, scores: ScoreTable) -> Measurements:
        raise DataError(
            "calibration is measured from probabilities, not from scores; "
            "use judge_generated (oodscope.runs.generated.judging)"
        )

    def check(self, benchmark: "Benchmark") -> None:
        raise DataError(
            "generated sets are evaluated by a study of them; use judge_generated (oodscope.runs.generated.judging)"
        )
