"""``train_heads``: the heads of many folds, trained at once."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.network import choose_device
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.session import Session, Table
from oodscope.training.heads.task import HeadTask, check_tasks
from oodscope.training.heads.trained import TrainedHead

CPU_BYTES = 2**30
"""What the tasks of one group may take on a processor."""

GPU_BYTES = 16 * 2**30
"""And on a GPU, if half of what is free there is not less; more at once would not be faster."""


def group_tasks(
    recipe: HeadRecipe, tasks: Sequence[HeadTask], width: int, classes: int, device: torch.device
) -> list[list[int]]:
    """The numbers of the tasks of each group. Results do not depend on the grouping."""
    alike: dict[tuple[int, bool], list[int]] = {}
    for number, task in enumerate(tasks):
        steps = math.ceil(len(task.train) / recipe.batch_size)
        alike.setdefault((steps, task.start is None), []).append(number)
    groups = []
    for numbers in alike.values():
        each = max(_bytes(recipe, tasks[number], width, classes) for number in numbers)
        size = max(1, budget(device) // each)
        groups += [numbers[start : start + size] for start in range(0, len(numbers), size)]
    return groups


def budget(device: torch.device) -> int:
    """Bytes that a group may take on ``device``."""
    if device.type != "cuda":
        return CPU_BYTES
    return min(GPU_BYTES, torch.cuda.mem_get_info(device)[0] // 2)


def _bytes(recipe: HeadRecipe, task: HeadTask, width: int, classes: int) -> int:
    """At a step's worst: gathered embeddings and the words of their mask, layers and slopes, Adam's copies, orders."""
    batch = min(recipe.batch_size, len(task.train))
    if task.outliers is not None:
        batch = math.ceil(batch * (1 + recipe.oe_share))
    layers = width * recipe.hidden + recipe.hidden * classes
    orders = len(task.train) + len(task.val) + (0 if task.outliers is None else len(task.outliers))
    return batch * (16 * width + 32 * recipe.hidden + 24 * classes) + 36 * layers + 40 * orders


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
    progress : notified of every epoch of every head.
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
