r"""The metrics of cross-validation (DCV-ROOD, Urrea-Castaño et al. 2025), from one sort of the scores.

The paper says that OOD is the positive class; its numbers are those of ID as the positive class (a maximal F1 of .889
at 80 % ID is that of calling everything ID). Here both orientations are computed and the name says which.
"""

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.metric import Columns, Metric
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.ranking.walk import Walk
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.scores import check_scores

_FPR = 0.05
_KEPT = 0.9


PRINTED_AS = {
    "tpr5_id_positive_interpolated": "TPR5",
    "auroc": "auroc",
    "aupr_in_trapezoid": "aupr",
    "max_f1_id_positive": "F1_score",
    "accuracy_at_90_id_kept": "acc_90",
}
"""What the tables of the paper call the metrics that it prints."""


def crossval_metrics(id_test: ArrayLike, ood_test: ArrayLike, id_val: ArrayLike) -> dict[str, float]:
    r"""Every metric of ``CROSSVAL`` for one fold, exact under ties. Larger score = more OOD.

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
        "tpr5_id_positive_interpolated": kept.interpolated_tpr_at_fpr(_FPR),
        "auroc": caught.auroc(),
        "aupr_in_trapezoid": kept.trapezoid_aupr(),
        "max_f1_id_positive": kept.max_f1(),
        "accuracy_at_90_id_kept": right / (id_scores.size + ood_scores.size),
        "aupr_in": kept.average_precision(),
        "aupr_out": caught.average_precision(),
        "tpr5_ood_positive_interpolated": caught.interpolated_tpr_at_fpr(_FPR),
        "max_f1_ood_positive": caught.max_f1(),
    }
    return {name: float(value) for name, value in found.items()}


def fold_metric(metric: Metric, columns: Columns) -> float:
    """Any metric of a ranking, or weighted functional of plain columns, for the test images of one fold."""
    if metric.value is not None:
        return float(metric.value(columns, np.ones(len(columns["score"]))))
    if metric.of is None or metric.positive is None or metric.sample is not Walk:
        raise DataError(f"{metric.name} is not measured from the scores of a fold; it needs more than their ranking")
    ood = columns["is_ood"]
    ranking = Ranking(columns["score"][~ood], columns["score"][ood])
    return float(metric.of(ranking.walk(metric.positive)))
