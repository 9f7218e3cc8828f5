"""Mean features of groups of images, in one pass."""

from collections.abc import Callable

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.detectors.precision import precise


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
