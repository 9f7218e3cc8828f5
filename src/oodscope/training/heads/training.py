"""``train_heads``: the heads of many folds, trained at once."""

from collections.abc import Sequence

import torch
from torch import Tensor

from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.network import choose_device
from oodscope.training.heads.grouping import group_tasks
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.session import Session, Table
from oodscope.training.heads.task import HeadTask, check_tasks
from oodscope.training.heads.trained import TrainedHead


def train_heads(
    recipe: HeadRecipe,
    embeddings: Tensor,
    labels: Tensor,
    tasks: Sequence[HeadTask],
    num_classes: int,
    *,
    outliers: Tensor | None = None,
    device: str | torch.device = "auto",
    progress: Progress = SILENT,
) -> list[TrainedHead]:
    """Train one head per task, all of them in one batched computation.

    A head is a function of the recipe, its own task and the embeddings: trained alone, beside others or in another
    order it comes out the same, but for the rounding of sums. Tasks that fit into memory together share every
    product; they may mix fresh trainings and fine-tunings.

    Parameters
    ----------
    recipe : the method and its hyper-parameters.
    embeddings : ``[N, D]``, of the known classes; shared by all tasks and moved to the device once.
    labels : ``[N]``, in 0 .. ``num_classes`` - 1 for all rows that a task uses.
    tasks : the heads to train.
    num_classes : logits of every head.
    outliers : ``[M, D]``, embeddings of the outliers that tasks with ``outliers`` refer to.
    device : ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
    progress : told of every epoch of every head.
    """
    check_tasks(recipe, embeddings, labels, tasks, num_classes, outliers)
    place = choose_device(device)
    dtype = torch.bfloat16 if recipe.precision == "bf16-mixed" else torch.float32
    table = Table(
        embeddings.to(place, dtype),
        labels.to(place, torch.int64),
        None if outliers is None else outliers.to(place, dtype),
        num_classes,
    )
    heads: dict[int, TrainedHead] = {}
    epochs = sum(recipe.epochs if task.start is None else recipe.oe_epochs for task in tasks)
    with progress.stage(f"train {len(tasks)} heads", epochs) as advance:
        for group in group_tasks(recipe, tasks, embeddings.shape[1], num_classes, place):
            heads |= zip(group, Session(recipe, table, [tasks[number] for number in group]).run(advance))
    return [heads[number] for number in range(len(tasks))]
