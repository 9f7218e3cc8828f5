"""What makes two trainings the same: everything that decides the weights, as JSON."""

from typing import Any

from torch import nn

from oodscope.base.hashing import canonical_json
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.fingerprint import structure_fingerprint, weights_fingerprint
from oodscope.training.recipe import Recipe
from oodscope.training.sets import Sets

SCHEMA = 1
"""Raised when the same recipe would no longer give the same weights."""

Identity = dict[str, Any]


def identify(model: nn.Module, recipe: Recipe, sets: Sets, preprocess: Preprocess) -> Identity:
    """Recipe, network, initial weights, preprocessing and data; not the device nor the number of threads."""
    return {
        "schema": SCHEMA,
        "recipe": recipe.describe(),
        "network": structure_fingerprint(model),
        "initial weights": weights_fingerprint(model),
        "preprocessing": preprocess.model_dump(mode="json"),
        "training images": sets.train.fingerprint,
        "validation images": sets.val.fingerprint if sets.val else None,
        "outliers": sets.ood.fingerprint if sets.ood else None,
    }


def difference(ours: Identity, theirs: Identity) -> str:
    """The first thing in which two trainings differ, for a message."""
    for part, value in ours.items():
        other = theirs.get(part)
        if canonical_json(other) == canonical_json(value):
            continue
        if part == "recipe" and isinstance(other, dict):
            key = next(key for key in {**value, **other} if value.get(key) != other.get(key))
            return f"{key} was {other.get(key)!r} and is now {value.get(key)!r}"
        if part == "initial weights":
            return "other initial weights (a function that builds the network starts from the recipe's seed)"
        return f"other {part}"
    return "nothing"
