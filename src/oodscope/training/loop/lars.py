"""LARS: gradient descent with a rate of its own for each tensor, for large batches."""

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.optim import Optimizer


class LARS(Optimizer):
    r"""Momentum, with the rate of each tensor in proportion to its length over that of its gradient.

    .. math:: g' = g + \lambda w, \qquad m \leftarrow \mu m + \eta\,\frac{\lVert w\rVert}{\lVert g\rVert +
              \lambda\lVert w\rVert}\,g', \qquad w \leftarrow w - \gamma m

    You, Gitman & Ginsburg, "Large Batch Training of Convolutional Networks", 2017. Biases and normalisations (tensors
    of one dimension) take plain steps without weight decay.

    Parameters
    ----------
    lr : :math:`\gamma`.
    momentum : :math:`\mu`.
    weight_decay : :math:`\lambda`.
    trust : :math:`\eta`.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, object]],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 1e-6,
        trust: float = 1e-3,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step of every tensor that has a gradient."""
        assert closure is None, "the loop computes gradients itself"
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(weight)
                moved = state["momentum"].mul_(group["momentum"]).add_(self._scaled(weight, group))
                weight.sub_(group["lr"] * moved)

    @staticmethod
    def _scaled(weight: torch.Tensor, group: dict[str, float]) -> torch.Tensor:
        gradient = weight.grad
        assert gradient is not None
        if weight.ndim < 2:
            return gradient
        decay = group["weight_decay"]
        length, slope = weight.norm(), gradient.norm()
        ratio = group["trust"] * length / (slope + decay * length)
        ratio = torch.where((length > 0) & (slope > 0), ratio, 1.0)
        return ratio * (gradient + decay * weight)
