"""Pure numbers: how well scores separate OOD from ID, and how sure one can be.

Larger score = more OOD. One :class:`Ranking` sorts the scores once and gives every point metric; its AUROC
gets a DeLong interval (:func:`auroc_interval`, :func:`mean_auroc_interval`), the other metrics a stratified
bootstrap (:func:`bootstrap`). A :class:`Rejection` tries thresholds on images that a classifier gets right or wrong,
a :class:`Selection` walks through all of them. Names carry the positive class, and ``METRICS`` says what each means.
"""

from oodscope.metrics.catalog import METRICS, MetricInfo, point_metrics
from oodscope.metrics.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.interval import Interval
from oodscope.metrics.proportion import wilson_interval
from oodscope.metrics.ranking import Ranking
from oodscope.metrics.rejection import Decisions, Rejection, der_over_prevalence
from oodscope.metrics.rejection_catalog import KEEPS, REJECTION_METRICS, SOURCES
from oodscope.metrics.resampling import Bootstrap, bootstrap, percentile_interval, resamples
from oodscope.metrics.selective import Acceptance, Selection
from oodscope.metrics.threshold import Threshold, ThresholdSample
from oodscope.metrics.walk import Positive

__all__ = [
    "KEEPS",
    "METRICS",
    "REJECTION_METRICS",
    "SOURCES",
    "Acceptance",
    "Bootstrap",
    "Decisions",
    "Interval",
    "MetricInfo",
    "Positive",
    "Ranking",
    "Rejection",
    "Selection",
    "Threshold",
    "ThresholdSample",
    "auroc_interval",
    "bootstrap",
    "der_over_prevalence",
    "mean_auroc_interval",
    "percentile_interval",
    "point_metrics",
    "resamples",
    "wilson_interval",
]
