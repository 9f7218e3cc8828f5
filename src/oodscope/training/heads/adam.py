"""Adam over stacked weights: elementwise, so each head gets what an optimiser of its own would give it."""

import torch
from torch import Tensor

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Kingma & Ba, ICLR 2015, with the authors' constants and no weight decay."""

    def __init__(self, weights: tuple[Tensor, ...], rate: float) -> None:
        self.rate = rate
        self.steps = 0
        self.means = [torch.zeros_like(each) for each in weights]
        self.squares = [torch.zeros_like(each) for each in weights]

    @torch.no_grad()
    def step(self, weights: tuple[Tensor, ...], slopes: tuple[Tensor, ...]) -> None:
        """Move the weights in place."""
        self.steps += 1
        rate = self.rate / (1 - _FIRST**self.steps)
        spread = (1 - _SECOND**self.steps) ** 0.5
        for weight, slope, mean, square in zip(weights, slopes, self.means, self.squares):
            mean.lerp_(slope, 1 - _FIRST)
            square.mul_(_SECOND).addcmul_(slope, slope, value=1 - _SECOND)
            weight.addcdiv_(mean, square.sqrt().div_(spread).add_(_EPSILON), value=-rate)

    def keep(self, tasks: Tensor) -> None:
        """Forget all heads but these."""
        self.means = [each[tasks] for each in self.means]
        self.squares = [each[tasks] for each in self.squares]
