"""Folds for cross-validation with outliers: by class and by hierarchy."""

from typing import TYPE_CHECKING, Any

from oodscope.data.folds.crossval import crossval_folds, crossval_hold_out
from oodscope.data.folds.dealing import ClassChoice, exact_share, hierarchical_choice
from oodscope.data.folds.fold import CrossvalFold
from oodscope.data.folds.hierarchical import HierarchicalFolds, hierarchical_folds, hierarchical_hold_out
from oodscope.data.folds.sets import FoldedSets, FoldPlan, fold_sets

if TYPE_CHECKING:
    from oodscope.data.folds.splitters import CrossvalKFold as CrossvalKFold
    from oodscope.data.folds.splitters import HierarchicalKFold as HierarchicalKFold

__all__ = [
    "ClassChoice",
    "CrossvalFold",
    "CrossvalKFold",
    "FoldPlan",
    "FoldedSets",
    "HierarchicalFolds",
    "HierarchicalKFold",
    "crossval_folds",
    "crossval_hold_out",
    "exact_share",
    "fold_sets",
    "hierarchical_choice",
    "hierarchical_folds",
    "hierarchical_hold_out",
]


def __getattr__(name: str) -> Any:
    # the splitters derive from scikit-learn's, which is slow to import and needed by nobody else here
    if name not in ("CrossvalKFold", "HierarchicalKFold"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from oodscope.data.folds import splitters

    return getattr(splitters, name)
