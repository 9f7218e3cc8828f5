"""The softmax of logits as gaps below the largest: fast in float32, and nothing cancels."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import threshold

from oodscope.detectors.math.numbers import on_host, precise

LOWEST = -87.0
"""Powers of gaps below this leave float32's normal range, where arithmetic is twenty times slower."""
FAINT = 1e-30
"""Sums below this feel that floor, and are worth a second look in float64."""


def gaps(logits: Tensor) -> Tensor:
    r""":math:`z_c - \max_j z_j \le 0`, in the precision of the logits: exact where classes compete."""
    return logits - logits.amax(dim=-1, keepdim=True)


def powers_(below: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`e^{g_c}` of gaps :math:`g_c`, in their place, and the sum :math:`r` of all but the winner's, in float64.

    Then :math:`p_c = e^{g_c}/(1+r)`, and :math:`1-\max_c p_c = r/(1+r)` does not cancel: confident images keep
    distinct scores instead of tying at 0. The winner's power is exactly 1; it is taken out of the few terms above
    a half, where that is exact, and the small terms are summed among themselves.
    """
    raised = (below.clamp_(min=LOWEST) if below.dtype == torch.float32 else below).exp_()
    large = threshold(raised, 0.5, 0.0)
    if raised.requires_grad:
        # callers go on in their place, and a gradient needs the powers as they are
        raised = raised.clone()
    others = precise(large.sum(dim=-1)) - 1
    return raised, others - precise(large.sub_(raised).sum(dim=-1))


def exact_where_faint(score: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Scores of rows in their own precision, and again in float64 for those so near 0 that float32 ends."""
    if not on_host(rows):
        return score(precise(rows))
    values = score(rows)
    if rows.dtype == torch.float32 and (faint := values < FAINT).any():
        values[faint] = score(precise(rows[faint]))
    return values


def average(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Mean softmax ``[N, C]`` of several logits ``[N, M, C]``, and one minus its largest entry, uncancelled."""
    raised, rest = powers_(gaps(logits))
    single = raised.div_((1 + rest).to(raised).unsqueeze(-1))
    mean = single.mean(dim=1)
    winner = mean.argmax(dim=1)[:, None, None].expand(-1, single.shape[1], 1)
    votes = precise(single.gather(2, winner).squeeze(2))
    # a member that gives more than a half has the same winner, and its rest is known exactly
    return mean, torch.where(votes > 0.5, rest / (1 + rest), 1 - votes).mean(dim=1)
