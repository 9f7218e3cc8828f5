"""Dual cross-validation: folds of known images and of classes of outliers, and a network for each fold."""

from oodscope.protocols.crossval.engine import cross_validate
from oodscope.protocols.crossval.frozen import FrozenEmbeddings
from oodscope.protocols.crossval.networks import FineTuning, FullTraining
from oodscope.protocols.crossval.outcome import CrossValidation
from oodscope.protocols.crossval.pair import Pair
from oodscope.protocols.crossval.plan import PAPER_DETECTORS, CrossValidationPlan

__all__ = [
    "PAPER_DETECTORS",
    "CrossValidation",
    "CrossValidationPlan",
    "FineTuning",
    "FrozenEmbeddings",
    "FullTraining",
    "Pair",
    "cross_validate",
]
