"""Folds for cross-validation with outliers: dual and hierarchical."""

from oodscope.data.folds.choice import ClassChoice, exact_share, hierarchical_choice
from oodscope.data.folds.dual import dual_folds, dual_hold_out
from oodscope.data.folds.fold import DualFold
from oodscope.data.folds.hierarchical import HierarchicalFolds, hierarchical_folds, hierarchical_hold_out

__all__ = [
    "ClassChoice",
    "DualFold",
    "HierarchicalFolds",
    "dual_folds",
    "dual_hold_out",
    "exact_share",
    "hierarchical_choice",
    "hierarchical_folds",
    "hierarchical_hold_out",
]
