"""What an attack on a detector measures beside AUROC: names, directions, units and meanings."""

from dataclasses import dataclass
from typing import Literal

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
