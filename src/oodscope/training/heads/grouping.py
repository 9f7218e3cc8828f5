"""Which tasks train at once: those that make the same number of steps, as many as memory holds."""

import math
from collections.abc import Sequence

import torch

from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.task import HeadTask

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
