"""HeadTask: one head to train, as rows of shared embeddings; and the checks that need no device."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.trained import TrainedHead

Rows = NDArray[np.int64]


class HeadTask(NamedTuple):
    """Which rows to learn from, which to judge by, and whether to go on from a trained head with outliers.

    Parameters
    ----------
    train, val : rows of the embeddings; ``val`` may be empty where the recipe has no patience.
    seed : decides initial weights, order and dropout, whatever else is trained beside this task.
    outliers, start : both or none. Rows of the outliers' embeddings, and the head that outlier exposure goes on from.
    """

    train: Rows
    val: Rows
    seed: int
    outliers: Rows | None = None
    start: TrainedHead | None = None


def check_tasks(
    recipe: HeadRecipe,
    embeddings: Tensor,
    labels: Tensor,
    tasks: Sequence[HeadTask],
    num_classes: int,
    outliers: Tensor | None,
) -> None:
    """One line about the first task that cannot be trained, before anything is moved to a device."""
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1]:
        raise DataError(f"embeddings {list(embeddings.shape)} and labels {list(labels.shape)} do not belong together")
    classes = labels.cpu().numpy()
    for number, task in enumerate(tasks):
        where = f"head task {number}"
        _check_rows(f"{where}: train", task.train, len(embeddings))
        _check_rows(f"{where}: val", task.val, len(embeddings))
        used = classes[np.concatenate([task.train, task.val])]
        if used.size and (used.min() < 0 or used.max() >= num_classes):
            raise DataError(f"{where}: labels from {used.min()} to {used.max()} do not fit {num_classes} classes")
        shown = classes[task.train]
        if not (shown != shown[:1]).any():
            raise DataError(f"{where}: the training rows show fewer than two classes")
        if (task.outliers is None) != (task.start is None):
            raise DataError(f"{where}: outlier exposure goes on from a trained head: give both outliers and start")
        if task.outliers is None or task.start is None:
            if recipe.patience and not len(task.val):
                raise DataError(f"{where}: patience={recipe.patience} needs validation rows; give some, or patience=0")
            continue
        _check_rows(f"{where}: outliers", task.outliers, 0 if outliers is None else len(outliers))
        if not len(task.outliers):
            raise DataError(f"{where}: there are no outliers to learn from")
        expected = (num_classes, recipe.hidden, embeddings.shape[1])
        if (task.start.head.num_classes, *task.start.hidden_weight.shape) != expected:
            raise DataError(f"{where}: start is a head of another shape than classes, hidden, width = {expected}")
    if outliers is not None and outliers.shape[1:] != embeddings.shape[1:]:
        raise DataError(f"outliers are {outliers.shape[1]} wide, embeddings {embeddings.shape[1]}")


def _check_rows(what: str, rows: Rows, count: int) -> None:
    if len(rows) and (rows.min() < 0 or rows.max() >= count):
        raise DataError(f"{what} has rows from {rows.min()} to {rows.max()}, but there are {count} embeddings")
