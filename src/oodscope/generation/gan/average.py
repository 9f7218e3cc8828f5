r"""The averaged generator: the one that is kept."""

import copy
from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from torch import nn

M = TypeVar("M", bound=nn.Module)

_RAMP = 0.05
"""The half-life is never longer than this share of the images seen, so that the first weights are soon forgotten."""


class Average(Generic[M]):
    r"""An exponential moving average of weights, :math:`\bar w \leftarrow β \bar w + (1 - β) w`.

    Parameters
    ----------
    model : whose weights are followed; it is copied. Buffers stay as they are.
    half_life : images after which a weight counts half.
    """

    def __init__(self, model: M, half_life: int) -> None:
        self.model: M = copy.deepcopy(model).eval().requires_grad_(False)
        self.half_life = half_life

    @torch.no_grad()
    def follow(self, model: M, images: int, seen: int) -> None:
        """Take one step of ``images`` images towards ``model``, which has seen ``seen`` of them."""
        keep = self.keep(images, seen)
        torch._foreach_lerp_(list(self.model.parameters()), list(model.parameters()), 1 - keep)

    def keep(self, images: int, seen: int) -> float:
        """β of one step."""
        return float(0.5 ** (images / min(self.half_life, _RAMP * seen)))


@torch.no_grad()
def settle(average: M, live: M, draw: Callable[[M, int], object], passes: int = 16) -> None:
    """Give an averaged network statistics of its own: those of batch norm belong to weights that it never had.

    Parameters
    ----------
    live : the network that was followed; its other buffers are copied first.
    draw : makes the network draw batch number ``k``.
    passes : batches that the statistics are averaged over.
    """
    for own, followed in zip(average.buffers(), live.buffers()):
        own.copy_(followed)
    norms = [module for module in average.modules() if isinstance(module, nn.BatchNorm2d)]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    average.train()
    for number in range(passes):
        draw(average, number)
    average.eval()
    for norm, momentum in zip(norms, kept):
        norm.momentum = momentum
