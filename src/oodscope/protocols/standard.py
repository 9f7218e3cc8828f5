"""Standard OOD detection: separate ``id_test`` from each near and far set."""

from oodscope.protocols.ranking import measure_accuracy, measure_separation
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable

NEGATIVES = ("id_test",)


def measure(scores: ScoreTable) -> Measurements:
    """Every ranking metric per set and as near and far means, and the accuracy on ``id_test``."""
    return measure_accuracy(scores, "standard", NEGATIVES) + measure_separation(scores, "standard", NEGATIVES)
