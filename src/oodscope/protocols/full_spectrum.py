"""Full-spectrum OOD detection: covariate-shifted ID images are negatives, as ``id_test`` is.

Yang et al., "Full-Spectrum Out-of-Distribution Detection" (IJCV 2023), and OpenOOD v1.5. A detector that
takes a new font, or blur, for a new class pays for it here. All negatives are pooled, as the papers do,
so a large covariate-shifted set weighs more than a small one.
"""

from oodscope.base.errors import DataError
from oodscope.protocols.separation import measure_accuracy, measure_separation
from oodscope.results import Measurements, ScoreTable

NEGATIVES = ("id_test", "csid")


def measure(scores: ScoreTable) -> Measurements:
    """Every ranking metric per set and as near and far means, and the accuracy per ID set and pooled."""
    if not scores.sets("csid"):
        raise DataError("full_spectrum needs a csid set (covariate-shifted ID images); this benchmark has none")
    return measure_accuracy(scores, "full_spectrum", NEGATIVES) + measure_separation(scores, "full_spectrum", NEGATIVES)
