"""The losses of many heads at once: one number per task, rows that only fill up counting nothing."""

import math

import torch
from torch import Tensor


def class_weights(labels: Tensor, valid: Tensor, num_classes: int, *, balanced: bool) -> Tensor:
    """``[T, C]``: one over the number of a task's training rows of each class; ones if not balanced.

    Only ratios count, because the loss divides by the sum of the weights.
    """
    if not balanced:
        return torch.ones(len(labels), num_classes, device=labels.device)
    counts = torch.zeros(len(labels), num_classes, device=labels.device)
    counts.scatter_add_(1, labels, valid.to(counts.dtype))
    return torch.where(counts > 0, 1 / counts, 0.0)


def weighted_cross_entropy(logits: Tensor, labels: Tensor, valid: Tensor, weights: Tensor) -> Tensor:
    """``[T]``: the mean of the rows' cross-entropies weighted by their classes, as ``nn.CrossEntropyLoss`` takes it."""
    of_row = weights.gather(1, labels) * valid
    wrong = -logits.log_softmax(dim=2).gather(2, labels[..., None])[..., 0]
    return (of_row * wrong).sum(dim=1) / of_row.sum(dim=1)


def from_uniform(logits: Tensor, valid: Tensor) -> Tensor:
    r"""``[T]``: the mean of :math:`\mathrm{KL}(\mathrm{uniform} \Vert p)` over the rows; 0 where there are none."""
    apart = -logits.log_softmax(dim=2).mean(dim=2) - math.log(logits.shape[2])
    return (apart * valid).sum(dim=1) / valid.sum(dim=1).clamp(min=1)
