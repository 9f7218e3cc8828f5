"""Weibull distributions by maximum likelihood, many at once."""

import math

import torch
from torch import Tensor

STEEPEST = 1e6
"""Largest shape: equal values ask for an infinite one, and this is a step already."""


def fit_weibull(values: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    r"""Shape :math:`k` and scale :math:`\lambda` of :math:`F(v) = 1 - e^{-(v/\lambda)^k}` for each row of values > 0.

    .. math:: \frac{\sum_i v_i^k \log v_i}{\sum_i v_i^k} - \frac1k = \frac1n\sum_i \log v_i, \qquad
              \lambda^k = \frac1n\sum_i v_i^k

    The left side of the first equation rises with :math:`k`: Newton's method, held to a factor of two per step, finds
    the root from anywhere. Only ``present`` values count; rows without any get a harmless 1 and 1.
    """
    weights = present.to(values.dtype)
    count = weights.sum(dim=1, keepdim=True).clamp(min=1)
    logs = values.log()
    mean = (logs * weights).sum(dim=1, keepdim=True) / count
    # around the mean logarithm, so that steep tails do not overflow
    centred = (logs - mean) * weights
    spread = (centred.square().sum(dim=1, keepdim=True) / count).sqrt()
    shape = (math.pi / math.sqrt(6) / spread).clamp(max=STEEPEST)
    for _ in range(100):
        share = torch.softmax((shape * centred).masked_fill(~present, -torch.inf), dim=1).nan_to_num(0.0)
        first = (share * centred).sum(dim=1, keepdim=True)
        second = (share * centred.square()).sum(dim=1, keepdim=True) - first.square()
        step = shape - (first - 1 / shape) / (second + shape.pow(-2))
        following = torch.clamp(step, shape / 2, shape * 2).clamp(max=STEEPEST)
        moved = (following / shape - 1).abs().amax()
        shape = following
        if moved < 1e-12:
            break
    log_scale = mean + ((shape * centred).masked_fill(~present, -torch.inf).logsumexp(1, True) - count.log()) / shape
    empty = ~present.any(dim=1)
    return shape.squeeze(1).masked_fill(empty, 1.0), log_scale.exp().squeeze(1).masked_fill(empty, 1.0)
