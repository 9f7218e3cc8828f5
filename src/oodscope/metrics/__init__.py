"""Pure numbers: how well scores separate OOD from ID, and how sure one can be.

Larger score = more OOD. One :class:`Ranking` sorts the scores once and gives every point metric; its AUROC
gets a DeLong interval (:func:`auroc_interval`, :func:`mean_auroc_interval`), the other metrics a stratified
bootstrap (:func:`bootstrap`). Names carry the positive class, and ``METRICS`` says what each means.
"""

from oodscope.metrics.catalog import METRICS, MetricInfo, point_metrics
from oodscope.metrics.crossed import crossed_auroc
from oodscope.metrics.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.interval import Interval
from oodscope.metrics.ranking import Ranking
from oodscope.metrics.resampling import Bootstrap, bootstrap, percentile_interval, resamples
from oodscope.metrics.walk import Positive

__all__ = [
    "METRICS",
    "Bootstrap",
    "Interval",
    "MetricInfo",
    "Positive",
    "Ranking",
    "auroc_interval",
    "bootstrap",
    "crossed_auroc",
    "mean_auroc_interval",
    "percentile_interval",
    "point_metrics",
    "resamples",
]
