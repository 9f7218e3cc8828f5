"""The standard point metrics: their names, their direction and what they say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import Positive, Walk
from oodscope.metrics.scores import FloatArray

Tuning = Literal["default", "id_only", "ood_val"]
"""How parameters were chosen. The three tracks are ranked apart, because each has seen different data."""

MEAN = "mean"
"""The ``set`` of a row that holds the unweighted mean over the sets of its group."""

KEEPS = (95, 99)
"""Percent of the threshold sample that a threshold keeps."""

SOURCES = {
    "val_correct": "correctly classified images of id_val",
    "train_correct": "correctly classified training images (the rule of the paper)",
    "train_all": "all training images",
}
"""Samples that a threshold may come from. Only the first compares detectors at equal false rejection: networks fit
their training images, some scores show it more than others, and new images are rejected more often than those."""


@dataclass(frozen=True)
class RejectionMetric:
    """What a report needs to know of a metric.

    Parameters
    ----------
    label : how tables call it.
    higher_is_better : direction of a good detector.
    description : one line for a reader who has not met the name.
    """

    label: str
    higher_is_better: bool
    description: str


def _at_thresholds() -> dict[str, RejectionMetric]:
    said = {
        "der": ("DER", "share of images wrongly kept or wrongly rejected"),
        "frr": ("FRR", "share of correctly classified images that are rejected"),
        "far": ("FAR", "share of misclassified or foreign images that are kept"),
        "cost": ("Cost", "mean cost of a decision, at the prices of the two mistakes"),
    }
    return {
        f"{kind}{keep}_{source}": RejectionMetric(
            f"{label}{keep} ({source.replace('_', ' ')})",
            False,
            f"{words} at the threshold that keeps {keep} % of {of}",
        )
        for source, of in SOURCES.items()
        for kind, (label, words) in said.items()
        for keep in KEEPS
    }


REJECTION_METRICS: dict[str, RejectionMetric] = {
    **_at_thresholds(),
    "der_oracle": RejectionMetric(
        "DER (best threshold)",
        False,
        "the smallest DER that any threshold reaches, a foreign set taken together with id_test",
    ),
    "der_accept_all": RejectionMetric("DER (accept all)", False, "share of images that the classifier gets wrong"),
    "der_reject_all": RejectionMetric("DER (reject all)", False, "share of images that the classifier gets right"),
    "augrc": RejectionMetric(
        "AUGRC",
        False,
        "share of accepted failures, averaged over thresholds (at most 50); a foreign set counts together with id_test",
    ),
    "aurc": RejectionMetric("AURC", False, "mean over coverages of the share of failures among the accepted"),
    "e_aurc": RejectionMetric("E-AURC", False, "AURC above that of the best order of the same images"),
    "auroc_failure": RejectionMetric(
        "AUROC (failures)", True, "probability that a misclassified or foreign image scores above a correct one"
    ),
    "coverage_at_risk5": RejectionMetric(
        "Coverage at 5 % risk", True, "largest share of images accepted with at most 5 % failures among them"
    ),
    "auroc_correct_id": RejectionMetric(
        "AUROC (correct ID)", True, "probability that a foreign image scores above a correctly classified ID image"
    ),
    "fpr95_id_positive_correct_id": RejectionMetric(
        "FPR95 (ID positive, correct ID)", False, "share of foreign images kept when 95 % of correct ID is kept"
    ),
}


Unit = Literal["percent", "count", "number"]
"""How people read a value: a share in percent, a count of images, or a plain number."""


@dataclass(frozen=True)
class AttackMetric:
    """What a report needs to know of a metric.

    Parameters
    ----------
    label : how tables call it.
    higher_is_better : direction of a good detector, or of a search that can be trusted.
    description : one line for a reader who has not met the name.
    """

    label: str
    higher_is_better: bool
    description: str
    unit: Unit = "percent"


ATTACK_METRICS: dict[str, AttackMetric] = {
    "min_rank": AttackMetric(
        "MinRank",
        True,
        "ID test images that look more in-distribution than the most in-looking outlier, mean over equal runs",
        "count",
    ),
    "min_rank_se": AttackMetric(
        "Standard error of MinRank", False, "standard error of the mean of MinRank over runs", "count"
    ),
    "min_rank_share": AttackMetric("MinRank / ID", True, "MinRank as a share of the ID test images"),
    "lowest_score": AttackMetric(
        "Lowest score",
        True,
        "lowest score that any chain has met, standardised on ID validation (0 is the mean of ID images)",
        "number",
    ),
    "acceptance": AttackMetric("Acceptance", True, "share of proposed moves that the chains made, mean over chains"),
    "last_gain": AttackMetric(
        "Last gain", False, "share of the budget after which half of the chains found nothing lower"
    ),
    "white_box_gain": AttackMetric(
        "White-box gain",
        False,
        "how much lower a short search with gradients brings the AUROC of the same images (negative: not at all)",
    ),
    "unreliable": AttackMetric("Unreliable", False, "reasons to think that the search stopped too early", "count"),
}


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
