"""FoldPlan: how two image sets are to be folded, as a job file may say it."""

from typing import Literal

from pydantic import Field

from oodscope.base.config import StrictModel


class FoldPlan(StrictModel):
    """Everything that decides the folds of two sets, but the sets and the repetition.

    Parameters
    ----------
    folds : K.
    seed : of all draws.
    val_share : of the training images of each ID class that go to validation, exactly.
    stratified : deal every ID class evenly over the folds; without it images are dealt regardless of class.
    level : of the hierarchy, one above the classes, such as ``superclass``: OOD classes are then dealt within each of
        its groups, the strata. None folds flat.
    deepest : level of the hierarchy below the classes, where there is one: ID images are dealt evenly there.
    strict : a stratum that misses the test of a fold is an error instead of a note.
    duplicates : what to do with equal images that could be trained on and tested: ``error`` stops, ``drop`` leaves out
        all but the first (an ID image before an OOD image) and notes how many.
    """

    folds: int = Field(default=5, ge=2)
    seed: int = Field(default=0, ge=0)
    val_share: float | str = 0.2
    stratified: bool = True
    level: str | None = None
    deepest: str | None = None
    strict: bool = False
    duplicates: Literal["error", "drop"] = "error"
