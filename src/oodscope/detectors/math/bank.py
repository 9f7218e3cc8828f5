"""Banks: the training rows that a detector remembers, which of them are neighbours, and means of groups of them."""

import logging
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.math.numbers import precise

_LOG = logging.getLogger(__name__)

BANK_ROWS = 128_000
"""Training images that a bank holds by default: all of CIFAR, a tenth of ImageNet (1 GB of 2,048 features)."""

Neighbours = int | Literal["auto", "openood"]
"""A number of neighbours; ``auto`` and ``openood`` as :func:`neighbours` has them."""


def group_sums(
    train: Activations, groups: int, group: Callable[[Activations], Tensor], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Sum ``[groups, D]`` of the features and number ``[groups, 1]`` of the images in each group.

    ``group`` says which group each image of a chunk of features, labels and logits belongs to.
    """
    sums = precise(torch.zeros(groups, train.features.shape[1], device=device))
    counts = torch.zeros(groups, dtype=torch.int64, device=device)
    for chunk in train.chunks(device=device, only=("features", "labels", "logits")):
        member = group(chunk)
        sums.index_add_(0, member, precise(chunk.features))
        counts += torch.bincount(member, minlength=groups)
    return sums, precise(counts).unsqueeze(1)


def means(sums: Tensor, counts: Tensor, otherwise: Tensor) -> Tensor:
    """Sums over counts; an empty group takes what it is ``otherwise`` given."""
    return torch.where(counts > 0, sums / counts.clamp(min=1), otherwise)


def neighbours(detector: str, k: Neighbours, openood: int, train: Activations, chosen: Tensor) -> int:
    r"""How many neighbours to take from the ``chosen`` training rows.

    .. math:: k = \min\bigl(k_{\mathrm{OpenOOD}}, \max(1, \lfloor n_c/5\rfloor)\bigr)

    with :math:`n_c` the rows of the smallest class that has any (all rows, where there are no labels): an image of a
    class with fewer rows than ``k`` has its k-th neighbour in another class and looks less like the training images
    than an outlier does. ``openood`` stands for OpenOOD's value; a number stands for itself. Of the last two, one that
    reaches :math:`n_c` leaves a warning.
    """
    if isinstance(k, str) and k not in ("auto", "openood"):
        raise DetectorError(f"{detector}: k must be a number, 'auto' or 'openood', not {k!r}")
    smallest = smallest_class(train, chosen)
    if k == "auto":
        return min(openood, max(1, smallest // 5))
    number = openood if k == "openood" else int(k)
    if number >= smallest:
        _LOG.warning(
            "%s: k=%d is not below the %d remembered images of the smallest class: its images will look "
            "out-of-distribution. Use k='auto', or k < %d",
            detector, number, smallest, smallest,
        )  # fmt: skip
    return number


def smallest_class(train: Activations, chosen: Tensor) -> int:
    """Rows of the smallest class that has any among the ``chosen``; all of these where there are no labels."""
    if "labels" in train:
        counts = torch.bincount(train.labels.cpu().long()[chosen].clamp(min=-1) + 1)[1:]
        if (counts > 0).any():
            return int(counts[counts > 0].min())
    return int(chosen.sum())


def picked_rows(
    detector: str, train: Activations, fraction: float | None, seed: int, *, balanced: bool = False
) -> Tensor:
    """Which training rows a bank of this ``fraction`` holds, as a mask; at least one.

    The seed alone decides. ``balanced``: as many rows of one class as of any other, as far as there are enough.
    ``None``: all rows, or ``BANK_ROWS`` of them where there are more.
    """
    if fraction is None:
        fraction = min(1.0, BANK_ROWS / len(train))
    if not 0 < fraction <= 1:
        raise DetectorError(f"{detector}: bank_fraction must lie in (0, 1], not {fraction}")
    if fraction == 1:
        return torch.ones(len(train), dtype=torch.bool)
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    if balanced:
        order = order[_turns(train.labels.cpu().long()[order]).argsort(stable=True)]
    chosen = torch.zeros(len(train), dtype=torch.bool)
    chosen[order[: max(1, round(fraction * len(train)))]] = True
    return chosen


def remembered(
    train: Activations, column: str, chosen: Tensor, device: torch.device, change: Callable[[Tensor], Tensor]
) -> Tensor:
    """The chosen rows of one column after ``change``, filled in place chunk by chunk."""
    bank, seen, filled = torch.empty(0), 0, 0
    everything = bool(chosen.all())
    for chunk in train.chunks(device=device, only=(column,)):
        # a mask makes an accelerator stop and count
        kept = change(chunk[column] if everything else chunk[column][chosen[seen : seen + len(chunk)].to(device)])
        if seen == 0:
            bank = kept.new_empty((int(chosen.sum()), *kept.shape[1:]))
        bank[filled : filled + len(kept)] = kept
        seen, filled = seen + len(chunk), filled + len(kept)
    return bank


def _turns(labels: Tensor) -> Tensor:
    """For each row, how many rows of its class come before it."""
    by_class = labels.argsort(stable=True)
    ordered = labels[by_class]
    turns = torch.empty_like(labels)
    turns[by_class] = torch.arange(len(labels)) - torch.searchsorted(ordered, ordered)
    return turns
