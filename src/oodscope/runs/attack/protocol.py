"""The protocol of attacks: detectors evaluated on the worst outliers that a search finds (Yoon et al. 2022)."""

from typing import TYPE_CHECKING

from oodscope.base.errors import DataError
from oodscope.base.paper import Paper
from oodscope.metrics.catalog import ATTACK, AUROC
from oodscope.protocols.base import Protocol
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable

if TYPE_CHECKING:
    from oodscope.data.benchmark import Benchmark


class AttackProtocol(Protocol):
    """AUROC and MinRank on the source images, under each variation, and under the worst of them."""

    name, title = "attack", "Attack"
    summary = "Search for the outliers that a detector takes for in-distribution images."
    paper = Paper(
        "Evaluating Out-of-Distribution Detectors Through Adversarial Generation of Outliers",
        "Yoon et al.",
        "arXiv 2208.10940",
    )
    position = 5
    metrics, headline = (AUROC, *ATTACK), ("auroc", "min_rank")
    negatives, groups = (), {}

    def measure(self, scores: ScoreTable) -> Measurements:
        from oodscope.runs.attack.measuring import measure

        return measure(scores)

    def check(self, benchmark: "Benchmark") -> None:
        raise DataError(
            "the protocol attack is not measured by an evaluation; use oodscope.attack or `oodscope attack`"
        )
