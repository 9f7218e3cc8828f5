"""The standard point metrics: their names, their direction and what they say."""

from collections.abc import Callable
from dataclasses import dataclass

from oodscope.metrics.ranking import Ranking
from oodscope.metrics.scores import FloatArray
from oodscope.metrics.walk import Positive, Walk


@dataclass(frozen=True)
class MetricInfo:
    """What a report needs to know of a metric.

    Parameters
    ----------
    higher_is_better : direction of a good detector.
    description : one line for a reader who has not met the name.
    positive : the class from whose side the ranking is walked.
    of : the metric of one walk, or of a block of bootstrap replicates.
    """

    higher_is_better: bool
    description: str
    positive: Positive
    of: Callable[[Walk], FloatArray]


def _fpr95(walk: Walk) -> FloatArray:
    return walk.fpr_at_tpr(0.95)


def _tpr5(walk: Walk) -> FloatArray:
    return walk.tpr_at_fpr(0.05)


def _aupr_50(walk: Walk) -> FloatArray:
    return walk.average_precision_at(0.5)


def _aupr_10(walk: Walk) -> FloatArray:
    return walk.average_precision_at(0.1)


METRICS: dict[str, MetricInfo] = {
    "auroc": MetricInfo(
        True, "probability that an OOD image scores above an ID image, ties counting half", "ood", Walk.auroc
    ),
    "aupr_in": MetricInfo(True, "average precision with ID as the positive class", "id", Walk.average_precision),
    "aupr_out": MetricInfo(True, "average precision with OOD as the positive class", "ood", Walk.average_precision),
    "aupr_in_prevalence50": MetricInfo(
        True, "average precision with ID as the positive class, as if half of the images were ID", "id", _aupr_50
    ),
    "aupr_out_prevalence50": MetricInfo(
        True, "average precision with OOD as the positive class, as if half of the images were OOD", "ood", _aupr_50
    ),
    "aupr_out_prevalence10": MetricInfo(
        True, "average precision with OOD as the positive class, as if a tenth of the images were OOD", "ood", _aupr_10
    ),
    "fpr95_ood_positive": MetricInfo(False, "share of ID flagged when 95 % of OOD is caught (OpenOOD)", "ood", _fpr95),
    "fpr95_id_positive": MetricInfo(False, "share of OOD kept when 95 % of ID is kept (most papers)", "id", _fpr95),
    "tpr5_ood_positive": MetricInfo(True, "share of OOD caught when at most 5 % of ID is flagged", "ood", _tpr5),
    "tpr5_id_positive": MetricInfo(True, "share of ID kept when at most 5 % of OOD is kept", "id", _tpr5),
}


def point_metrics(ranking: Ranking) -> dict[str, float]:
    """Every metric of ``METRICS`` for one ranking."""
    return {name: float(info.of(ranking.walk(info.positive))) for name, info in METRICS.items()}
