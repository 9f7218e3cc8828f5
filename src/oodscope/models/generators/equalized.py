r"""Layers with an equalised learning rate: weights are kept at unit scale and scaled when they are used.

Adam moves every weight by about its learning rate. Weights that are stored as standard normal numbers and multiplied
by He's constant in the forward pass therefore all learn at one relative speed, whatever their fan-in (Karras et al.,
"Progressive Growing of GANs", ICLR 2018).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, leaky_relu, linear


def leaky(values: Tensor) -> Tensor:
    """Leaky ReLU of slope 0.2, times √2, which keeps the second moment of standard normal values near one."""
    return leaky_relu(values, 0.2) * math.sqrt(2)


class EqualLinear(nn.Module):
    """A linear layer.

    Parameters
    ----------
    bias : the bias at the start.
    rate : its learning rate, relative to that of other layers; the mapping network learns at 0.01.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: float = 0.0, rate: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / rate)
        self.bias = nn.Parameter(torch.full((outputs,), bias / rate))
        self.scale, self.rate = rate / math.sqrt(inputs), rate

    def forward(self, values: Tensor) -> Tensor:
        return linear(values, self.weight * self.scale, self.bias * self.rate)


class EqualConv(nn.Module):
    """A convolution that keeps the size of its input, or halves it after a blur that holds back what would alias."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, *, down: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.scale, self.padding, self.down = 1 / math.sqrt(inputs * kernel**2), kernel // 2, down

    def forward(self, images: Tensor) -> Tensor:
        if self.down:
            images = nn.functional.avg_pool2d(images, 2, stride=1)
        stride = 2 if self.down else 1
        return conv2d(images, self.weight * self.scale, self.bias, stride=stride, padding=self.padding)
