"""The catalogue of metrics: every metric of the package, of installed packages, and those registered in code."""

from collections.abc import Callable, Iterator

from oodscope.base.registry import Collection
from oodscope.metrics.calibration.calibration import Reliability
from oodscope.metrics.metric import Columns, Metric
from oodscope.metrics.openset import OPENSET
from oodscope.metrics.ranking.readings import FprAtTpr, PrecisionArea, RocArea, TprAtFpr
from oodscope.metrics.ranking.walk import Positive, Walk, weighted_walk
from oodscope.metrics.rejection.rejection import Decisions
from oodscope.metrics.rejection.selective import SELECTIVE, Acceptance, weighted_acceptance
from oodscope.metrics.scores import FloatArray

KEEPS = (95, 99)
"""Percent of the threshold sample that a threshold keeps."""

SOURCES = {
    "val_correct": "correctly classified images of id_val",
    "train_correct": "correctly classified training images (the rule of the paper)",
    "train_all": "all training images",
}
"""Samples that a threshold may come from. Only the first compares detectors at equal false rejection: networks fit
their training images, some scores show it more than others, and new images are rejected more often than those."""


def _ranking(
    name: str, label: str, higher: bool, positive: Positive, of: Callable[[Walk], FloatArray], description: str
) -> Metric:
    def value(columns: Columns, weights: FloatArray) -> float:
        return float(of(weighted_walk(columns["score"], columns["is_ood"], weights, positive)))

    return Metric(name, label, higher, description, positive=positive, sample=Walk, of=of, value=value)


def _interpolated_tpr5(walk: Walk) -> FloatArray:
    return walk.interpolated_tpr_at_fpr(0.05)


_FPR95, _TPR5, _AUPR_50 = FprAtTpr(0.95), TprAtFpr(0.05), PrecisionArea(0.5)

AUROC = _ranking(
    "auroc",
    "AUROC",
    True,
    "ood",
    RocArea(),
    "probability that an OOD image scores above an ID image, ties counting half",
)
AUPR_IN = _ranking(
    "aupr_in",
    "AUPR (ID positive)",
    True,
    "id",
    PrecisionArea(),
    "average precision with ID as the positive class",
)
AUPR_OUT = _ranking(
    "aupr_out",
    "AUPR (OOD positive)",
    True,
    "ood",
    PrecisionArea(),
    "average precision with OOD as the positive class",
)
FPR95_OOD_POSITIVE = _ranking(
    "fpr95_ood_positive",
    "FPR95 (OOD positive)",
    False,
    "ood",
    _FPR95,
    "share of ID flagged when 95 % of OOD is caught (OpenOOD)",
)
FPR95_ID_POSITIVE = _ranking(
    "fpr95_id_positive",
    "FPR95 (ID positive)",
    False,
    "id",
    _FPR95,
    "share of OOD kept when 95 % of ID is kept (most papers)",
)

RANKING: tuple[Metric, ...] = (
    AUROC,
    AUPR_IN,
    AUPR_OUT,
    _ranking(
        "aupr_in_prevalence50",
        "AUPR (ID positive) at 50 % ID",
        True,
        "id",
        _AUPR_50,
        "average precision with ID as the positive class, as if half of the images were ID",
    ),
    _ranking(
        "aupr_out_prevalence50",
        "AUPR (OOD positive) at 50 % OOD",
        True,
        "ood",
        _AUPR_50,
        "average precision with OOD as the positive class, as if half of the images were OOD",
    ),
    _ranking(
        "aupr_out_prevalence10",
        "AUPR (OOD positive) at 10 % OOD",
        True,
        "ood",
        PrecisionArea(0.1),
        "average precision with OOD as the positive class, as if a tenth of the images were OOD",
    ),
    FPR95_OOD_POSITIVE,
    FPR95_ID_POSITIVE,
    _ranking(
        "tpr5_ood_positive",
        "TPR at 5 % FPR (OOD positive)",
        True,
        "ood",
        _TPR5,
        "share of OOD caught when at most 5 % of ID is flagged",
    ),
    _ranking(
        "tpr5_id_positive",
        "TPR at 5 % FPR (ID positive)",
        True,
        "id",
        _TPR5,
        "share of ID kept when at most 5 % of OOD is kept",
    ),
)
"""What protocols that rank images measure, in the order of their rows."""

_CROSSVAL_ALONE: tuple[Metric, ...] = (
    _ranking(
        "tpr5_id_positive_interpolated",
        "TPR at 5 % FPR (ID positive, interpolated)",
        True,
        "id",
        _interpolated_tpr5,
        "share of ID kept when 5 % of OOD is kept, on the straight lines between the points of the curve",
    ),
    _ranking(
        "aupr_in_trapezoid",
        "AUPR (ID positive, trapezoid)",
        True,
        "id",
        Walk.trapezoid_aupr,
        "area under straight lines between precision-recall points, ID positive",
    ),
    _ranking(
        "max_f1_id_positive",
        "largest F1 (ID positive)",
        True,
        "id",
        Walk.max_f1,
        "F1 of finding ID at the best of all thresholds, chosen on the test images",
    ),
    Metric(
        "accuracy_at_90_id_kept",
        "accuracy at 90 % ID kept",
        True,
        "share of test images that are decided correctly at the threshold that keeps 90 % of the ID validation images",
    ),
    _ranking(
        "tpr5_ood_positive_interpolated",
        "TPR at 5 % FPR (OOD positive, interpolated)",
        True,
        "ood",
        _interpolated_tpr5,
        "share of OOD caught when 5 % of ID is flagged, on the straight lines between the points of the curve",
    ),
    _ranking(
        "max_f1_ood_positive",
        "largest F1 (OOD positive)",
        True,
        "ood",
        Walk.max_f1,
        "F1 of finding OOD at the best of all thresholds, chosen on the test images",
    ),
)


def _at_thresholds() -> Iterator[Metric]:
    kinds = {
        "der": ("DER", "share of images wrongly kept or wrongly rejected"),
        "frr": ("FRR", "share of correctly classified images that are rejected"),
        "far": ("FAR", "share of misclassified or OOD images that are kept"),
        "cost": ("Cost", "mean cost of a decision, at the prices of the two mistakes"),
    }
    for source, images in SOURCES.items():
        for kind, (label, words) in kinds.items():
            for keep in KEEPS:
                yield Metric(
                    f"{kind}{keep}_{source}",
                    f"{label}{keep} ({source.replace('_', ' ')})",
                    False,
                    f"{words} at the threshold that keeps {keep} % of {images}",
                    sample=Decisions,
                    of=None if kind == "cost" else getattr(Decisions, kind).fget,
                )


def _selective(name: str, label: str, higher: bool, description: str) -> Metric:
    of = SELECTIVE[name]

    def value(columns: Columns, weights: FloatArray) -> float:
        return float(of(weighted_acceptance(columns["score"], columns["correct"], weights)))

    return Metric(name, label, higher, description, sample=Acceptance, of=of, value=value)


REJECTION: tuple[Metric, ...] = (
    *_at_thresholds(),
    _selective(
        "der_oracle",
        "DER (best threshold)",
        False,
        "the smallest DER that any threshold reaches, an OOD set taken together with id_test",
    ),
    Metric("der_accept_all", "DER (accept all)", False, "share of images that the classifier gets wrong"),
    Metric("der_reject_all", "DER (reject all)", False, "share of images that the classifier gets right"),
    _selective(
        "augrc",
        "AUGRC",
        False,
        "share of accepted failures, averaged over thresholds (at most 50); an OOD set counts together with id_test",
    ),
    _selective("aurc", "AURC", False, "mean over coverages of the share of failures among the accepted"),
    _selective("e_aurc", "E-AURC", False, "AURC above that of the best order of the same images"),
    _selective(
        "auroc_failure",
        "AUROC (failures)",
        True,
        "probability that a misclassified or OOD image scores above a correct one",
    ),
    _selective(
        "coverage_at_risk5",
        "Coverage at 5 % risk",
        True,
        "largest share of images accepted with at most 5 % failures among them",
    ),
    Metric(
        "auroc_correct_id",
        "AUROC (correct ID)",
        True,
        "probability that an OOD image scores above a correctly classified ID image",
        positive="ood",
        sample=Walk,
        of=RocArea(),
    ),
    Metric(
        "fpr95_id_positive_correct_id",
        "FPR95 (ID positive, correct ID)",
        False,
        "share of OOD images kept when 95 % of correct ID is kept",
        positive="id",
        sample=Walk,
        of=_FPR95,
    ),
)
"""What keeping and rejecting images is measured by."""

ATTACK: tuple[Metric, ...] = (
    Metric(
        "min_rank",
        "MinRank",
        True,
        "ID test images that look more in-distribution than the most ID-like outlier, mean over equal runs",
        "count",
    ),
    Metric(
        "min_rank_se", "Standard error of MinRank", False, "standard error of the mean of MinRank over runs", "count"
    ),
    Metric("min_rank_share", "MinRank / ID", True, "MinRank as a share of the ID test images"),
    Metric(
        "lowest_score",
        "Lowest score",
        True,
        "lowest score that any chain has met, standardised on ID validation (0 is the mean of ID images)",
        "number",
    ),
    Metric("acceptance", "Acceptance", True, "share of proposed moves that the chains made, mean over chains"),
    Metric("last_gain", "Last gain", False, "share of the budget after which half of the chains found nothing lower"),
    Metric(
        "white_box_gain",
        "White-box gain",
        False,
        "how much lower a search with gradients, of the same budget, brings the AUROC of the same images",
    ),
    Metric("auroc_fall", "Fall per doubling", False, "AUROC that the last doubling of the budget of a search took"),
    Metric("auroc_8x", "AUROC at 8 budgets", True, "AUROC expected of a search with eight times the budget"),
    Metric("auroc_search_sd", "Search spread", False, "standard deviation of the AUROC over search seeds"),
    Metric("valid_share", "Valid", True, "share of found images that an independent judge takes for a source class"),
    Metric("unreliable", "Unreliable", False, "reasons to think that the search stopped too early", "count"),
)
"""What an attack measures beside AUROC."""

STREAM: tuple[Metric, ...] = (
    Metric(
        "window_auroc",
        "AUROC in windows",
        True,
        "probability that an OOD image scores above an ID image of the same window of the stream",
    ),
    Metric(
        "alarms_per_1000",
        "False alarms per 1,000 ID",
        False,
        "ID images above the threshold that was fixed on ID validation images before the stream, per 1,000",
        "number",
    ),
    Metric("ood_flagged", "OOD flagged", True, "share of OOD images above the threshold fixed before the stream"),
    Metric(
        "rolling_alarms_per_1000",
        "False alarms per 1,000 ID (rolling)",
        False,
        "ID images above the quantile of the scores just before them, per 1,000",
        "number",
    ),
    Metric(
        "rolling_ood_flagged",
        "OOD flagged (rolling)",
        True,
        "share of OOD images above the quantile of the scores just before them",
    ),
    Metric(
        "images_to_half_burst",
        "Images to half a burst",
        False,
        "images of a burst until half of it is flagged at the threshold fixed before the stream, at most its length",
        "number",
    ),
    Metric("bursts_half_flagged", "Bursts half flagged", True, "share of bursts of which half is flagged in the end"),
)
"""What the order of a stream of images is measured by; AUROC over the whole stream stands beside it."""

ACCURACY = Metric("accuracy", "Accuracy", True, "share of ID images that the classifier gets right")
FALSE_ALARMS = Metric(
    "false_alarms", "False alarms", False, "share of ID images above the threshold of a deployed detector"
)


def _error(bins: Reliability) -> FloatArray:
    return bins.error  # type: ignore[return-value]  # a float is an array without axes


CALIBRATION: tuple[Metric, ...] = (
    Metric(
        "ece15",
        "ECE",
        False,
        "mean gap between confidence and accuracy over 15 bins of equal width",
        sample=Reliability,
        of=_error,
    ),
    Metric(
        "adaptive_ece15",
        "adaptive ECE",
        False,
        "mean gap between confidence and accuracy over 15 bins of equal mass",
        sample=Reliability,
        of=_error,
    ),
    Metric(
        "classwise_ece15",
        "classwise ECE",
        False,
        "mean gap between the probability of every class and its frequency, over 15 bins",
    ),
)
"""How far the confidence of a classifier can be trusted."""


METRICS: Collection[Metric] = Collection(
    "metric",
    "metrics",
    {
        metric.name: metric
        for metric in (
            *RANKING,
            *_CROSSVAL_ALONE,
            *OPENSET,
            *REJECTION,
            *ATTACK,
            *STREAM,
            ACCURACY,
            FALSE_ALARMS,
            *CALIBRATION,
        )
    },
    check=lambda value: isinstance(value, Metric),
    expected="an oodscope.Metric",
    named=lambda metric: metric.name,
)
"""All metrics by name: ours, those of installed packages (``oodscope.metrics``), and those registered in code."""

CROSSVAL: tuple[Metric, ...] = tuple(
    METRICS[name]
    for name in (
        "tpr5_id_positive_interpolated",
        "auroc",
        "aupr_in_trapezoid",
        "max_f1_id_positive",
        "accuracy_at_90_id_kept",
        "aupr_in",
        "aupr_out",
        "tpr5_ood_positive_interpolated",
        "max_f1_ood_positive",
    )
)
"""What cross-validation measures: those that its paper prints first, in its order."""
