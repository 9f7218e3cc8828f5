"""Near-OOD images by training: like real ones to the eye, like none to an ensemble of classifiers."""

from oodscope.generation.near.objective import NearObjective, Perceptual, Semantic
from oodscope.generation.near.recipe import LAMBDAS, NearRecipe
from oodscope.generation.near.sampling import sample
from oodscope.generation.near.stages import TrainedNear, usable
from oodscope.generation.near.trained import fine_tune, fine_tune_grid, train_base

__all__ = [
    "LAMBDAS",
    "NearObjective",
    "NearRecipe",
    "Perceptual",
    "Semantic",
    "TrainedNear",
    "fine_tune",
    "fine_tune_grid",
    "sample",
    "train_base",
    "usable",
]
