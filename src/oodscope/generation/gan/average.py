r"""The averaged generator: the one that is kept."""

import copy
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
