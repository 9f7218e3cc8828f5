"""The metrics of rejection: their names, their direction and what they say."""

from dataclasses import dataclass

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
