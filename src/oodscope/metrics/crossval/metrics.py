r"""The metrics of dual cross-validation (DCV-ROOD, Urrea-Castaño et al. 2025), from one sort of the scores.

The paper says that OOD is the positive class; its numbers are those of ID as the positive class (a maximal F1 of .889
at 80 % ID is that of calling everything ID). Here both orientations are computed and the name says which.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.scores import check_scores

_FPR = 0.05
_KEPT = 0.9


@dataclass(frozen=True)
class DualMetric:
    """What tables and pages say of a metric; every one of them is better when larger.

    Parameters
    ----------
    label : how a table calls it.
    description : one line for a reader who has not met the name.
    printed_as : its name in the tables of the paper; empty for those that the paper does not print.
    """

    label: str
    description: str
    printed_as: str = ""
    higher_is_better: bool = True


DUAL_METRICS: dict[str, DualMetric] = {
    "tpr5_id_positive": DualMetric(
        "TPR at 5 % FPR (ID positive)",
        "share of ID kept when 5 % of OOD is kept, on the straight lines between the points of the curve",
        "TPR5",
    ),
    "auroc": DualMetric("AUROC", "probability that an OOD image scores above an ID image, ties counting half", "auroc"),
    "aupr_in_trapezoid": DualMetric(
        "AUPR (ID positive, trapezoid)",
        "area under straight lines between precision-recall points, ID positive",
        "aupr",
    ),
    "max_f1_id_positive": DualMetric(
        "largest F1 (ID positive)",
        "F1 of finding ID at the best of all thresholds, chosen on the test images",
        "F1_score",
    ),
    "accuracy_at_90_id_kept": DualMetric(
        "accuracy at 90 % ID kept",
        "share of test images told right by the threshold that keeps 90 % of the ID validation images",
        "acc_90",
    ),
    "aupr_in": DualMetric("AUPR (ID positive)", "average precision with ID as the positive class"),
    "aupr_out": DualMetric("AUPR (OOD positive)", "average precision with OOD as the positive class"),
    "tpr5_ood_positive": DualMetric(
        "TPR at 5 % FPR (OOD positive)",
        "share of OOD caught when 5 % of ID is flagged, on the straight lines between the points of the curve",
    ),
    "max_f1_ood_positive": DualMetric(
        "largest F1 (OOD positive)", "F1 of finding OOD at the best of all thresholds, chosen on the test images"
    ),
}
"""Those that the paper prints first, in its order."""


def dual_metrics(id_test: ArrayLike, ood_test: ArrayLike, id_val: ArrayLike) -> dict[str, float]:
    r"""Every metric of ``DUAL_METRICS`` for one fold, exact under ties. Larger score = more OOD.

    The threshold of the accuracy is the linear 90 % quantile of the ID *validation* scores, so no test image has a
    say in it, and an image is called OOD iff it scores strictly above. The other metrics try every threshold.

    Parameters
    ----------
    id_test, ood_test : scores of the test images of the fold.
    id_val : scores of ID validation images, held out of the training part.
    """
    id_scores, ood_scores = check_scores(id_test, "ID scores"), check_scores(ood_test, "OOD scores")
    ranking = Ranking(id_scores, ood_scores)
    kept, caught = ranking.walk("id"), ranking.walk("ood")
    threshold = ThresholdSample(id_val, "ID validation scores").threshold(_KEPT).value
    right = np.count_nonzero(id_scores <= threshold) + np.count_nonzero(ood_scores > threshold)
    found = {
        "tpr5_id_positive": kept.interpolated_tpr_at_fpr(_FPR),
        "auroc": caught.auroc(),
        "aupr_in_trapezoid": kept.trapezoid_aupr(),
        "max_f1_id_positive": kept.max_f1(),
        "accuracy_at_90_id_kept": right / (id_scores.size + ood_scores.size),
        "aupr_in": kept.average_precision(),
        "aupr_out": caught.average_precision(),
        "tpr5_ood_positive": caught.interpolated_tpr_at_fpr(_FPR),
        "max_f1_ood_positive": caught.max_f1(),
    }
    return {name: float(value) for name, value in found.items()}
