"""Pure numbers: how well scores separate OOD from ID, and how sure one can be.

Larger score = more OOD. One :class:`Ranking` sorts the scores once and gives every point metric; its AUROC
gets a DeLong interval (:func:`auroc_interval`, :func:`mean_auroc_interval`) and one over classes
(:func:`class_interval`), the other metrics a stratified bootstrap (:func:`bootstrap_each`), rates Wilson's, runs
Student's. A :class:`Rejection` tries thresholds on images that a classifier gets right or wrong, a
:class:`Selection` walks through all of them. Names carry the positive class, and ``METRICS`` says what each means.
A classifier's confidence is judged by its :func:`reliability`, a generated benchmark by :func:`mutual_information`,
:func:`frechet_distance` and :func:`kendall`. Whether two detectors differ is the question of
:mod:`oodscope.metrics.comparison`.
"""

from oodscope.metrics.attack_catalog import ATTACK_METRICS, AttackMetric, Unit
from oodscope.metrics.bootstrap import Bootstrap, bca_interval, percentile_interval
from oodscope.metrics.calibration import (
    Reliability,
    adaptive_calibration_error,
    equal_mass_reliability,
    expected_calibration_error,
    reliability,
)
from oodscope.metrics.catalog import METRICS, MetricInfo, point_metrics
from oodscope.metrics.classwise_calibration import classwise_calibration_error, classwise_interval
from oodscope.metrics.clusters import Noise, class_interval, sampling_noise
from oodscope.metrics.conformal import Calibration, Guarantee, calibrate
from oodscope.metrics.crossed import crossed_auroc
from oodscope.metrics.crossval import DUAL_METRICS, DualMetric, dual_metrics
from oodscope.metrics.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.draws import resamples
from oodscope.metrics.frechet import Gaussian, frechet_distance
from oodscope.metrics.information import most_information, mutual_information
from oodscope.metrics.interval import Interval
from oodscope.metrics.minrank import OutlierRanks, min_rank_interval, outlier_ranks, source_interval, standard_error
from oodscope.metrics.placements import Placements, place, together
from oodscope.metrics.proportion import wilson_interval
from oodscope.metrics.radar import radar_radii
from oodscope.metrics.rank_agreement import WithinGroups, kendall, kendall_interval, kendall_within
from oodscope.metrics.ranking import Ranking
from oodscope.metrics.rejection import Decisions, Rejection, der_over_prevalence
from oodscope.metrics.rejection_catalog import KEEPS, REJECTION_METRICS, SOURCES
from oodscope.metrics.repeats import t_interval
from oodscope.metrics.resampling import bootstrap, bootstrap_each
from oodscope.metrics.selective import Acceptance, Selection
from oodscope.metrics.threshold import Threshold, ThresholdSample
from oodscope.metrics.walk import Positive
from oodscope.metrics.window import Window, overlap_window, raised_window

__all__ = [
    "ATTACK_METRICS",
    "DUAL_METRICS",
    "KEEPS",
    "METRICS",
    "REJECTION_METRICS",
    "SOURCES",
    "Acceptance",
    "AttackMetric",
    "Bootstrap",
    "Calibration",
    "Decisions",
    "DualMetric",
    "Gaussian",
    "Guarantee",
    "Interval",
    "MetricInfo",
    "Noise",
    "OutlierRanks",
    "Placements",
    "Positive",
    "Ranking",
    "Rejection",
    "Reliability",
    "Selection",
    "Threshold",
    "ThresholdSample",
    "Unit",
    "Window",
    "WithinGroups",
    "adaptive_calibration_error",
    "auroc_interval",
    "bca_interval",
    "bootstrap",
    "bootstrap_each",
    "calibrate",
    "class_interval",
    "classwise_calibration_error",
    "classwise_interval",
    "crossed_auroc",
    "der_over_prevalence",
    "dual_metrics",
    "equal_mass_reliability",
    "expected_calibration_error",
    "frechet_distance",
    "kendall",
    "kendall_interval",
    "kendall_within",
    "mean_auroc_interval",
    "min_rank_interval",
    "most_information",
    "mutual_information",
    "outlier_ranks",
    "overlap_window",
    "percentile_interval",
    "place",
    "point_metrics",
    "radar_radii",
    "raised_window",
    "reliability",
    "resamples",
    "sampling_noise",
    "source_interval",
    "standard_error",
    "t_interval",
    "together",
    "wilson_interval",
]
