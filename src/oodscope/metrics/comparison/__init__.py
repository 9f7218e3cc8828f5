"""Is the difference more than noise? One file per question.

Two detectors on the same images: :func:`paired_delong` for AUROC, :func:`paired_bootstrap` for any metric,
:func:`mcnemar` for error rates. The same pair over many OOD sets: :func:`signed_rank`; many detectors over many
sets: :func:`friedman` and :func:`critical_difference`; all pairs over the cells of a study: :func:`pair_tests`, and
whether a cheaper study finds the same: :func:`hits_and_errors`, :func:`directions`. Folds of a cross-validation:
:func:`corrected_t`. Several comparisons at once: :func:`holm`, :func:`benjamini_hochberg`, and :func:`rank_ranges` for
a whole table.
"""

from oodscope.metrics.comparison.agreement import (
    Directions,
    HitsAndErrors,
    Rate,
    directions,
    hits_and_errors,
    significance_counts,
)
from oodscope.metrics.comparison.cells import CELL_TESTS, CellTests, PairTests, cell_tests, pair_tests
from oodscope.metrics.comparison.folds import corrected_t
from oodscope.metrics.comparison.many_sets import (
    FEWEST_SETS,
    CriticalDifference,
    critical_difference,
    friedman,
    signed_rank,
    signed_ranks,
)
from oodscope.metrics.comparison.mcnemar import mcnemar
from oodscope.metrics.comparison.multiplicity import benjamini_hochberg, holm
from oodscope.metrics.comparison.paired import PairedTest, detectable_difference, paired_bootstrap, paired_delong
from oodscope.metrics.comparison.ranks import rank_ranges

__all__ = [
    "CELL_TESTS",
    "FEWEST_SETS",
    "CellTests",
    "CriticalDifference",
    "Directions",
    "HitsAndErrors",
    "PairTests",
    "PairedTest",
    "Rate",
    "benjamini_hochberg",
    "cell_tests",
    "corrected_t",
    "critical_difference",
    "detectable_difference",
    "directions",
    "friedman",
    "hits_and_errors",
    "holm",
    "mcnemar",
    "pair_tests",
    "paired_bootstrap",
    "paired_delong",
    "rank_ranges",
    "signed_rank",
    "signed_ranks",
    "significance_counts",
]
