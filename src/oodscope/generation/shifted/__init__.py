"""Shifted images by training: unlike real ones to the eye, of the same class to an ensemble of classifiers."""

from oodscope.generation.shifted.objective import Members, ShiftedObjective
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.generation.shifted.sampling import shift
from oodscope.generation.shifted.trained import TrainedShifted, train_shifted

__all__ = ["Members", "ShiftedObjective", "ShiftedRecipe", "TrainedShifted", "shift", "train_shifted"]
