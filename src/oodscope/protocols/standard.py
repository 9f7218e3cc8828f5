"""Standard OOD detection: separate ``id_test`` from each near-OOD and far-OOD set."""

from oodscope.base.paper import Paper
from oodscope.metrics.catalog import RANKING
from oodscope.protocols.base import Protocol
from oodscope.protocols.ranking import rank_metrics
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable


class Standard(Protocol):
    """Every ranking metric per set and as near and far means, and the accuracy on ``id_test``."""

    name, title = "standard", "Standard"
    summary = "Separate ID test images from those of each near-OOD and far-OOD set."
    paper = Paper(
        "OpenOOD v1.5: Enhanced Benchmark for Out-of-Distribution Detection",
        "Zhang et al.",
        "arXiv 2306.09301",
    )
    position = 1
    metrics, headline = RANKING, ("auroc",)

    def measure(self, scores: ScoreTable) -> Measurements:
        return rank_metrics(scores, self)
