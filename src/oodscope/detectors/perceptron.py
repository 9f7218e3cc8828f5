"""Small perceptrons: drawn from a seed, trained as modules, kept as plain matrices."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

SLOPE = 0.2
"""Of the leaky ReLU below zero."""

Layers = list[tuple[Tensor, Tensor]]


def perceptron(widths: Sequence[int], generator: torch.Generator) -> nn.Sequential:
    """Linear layers with batch normalisation and leaky ReLU between them; the global random state is left alone."""
    parts: list[nn.Module] = []
    for ins, outs in pairwise(widths[:-1]):
        # batch normalisation would take a bias out again
        parts += [_linear(ins, outs, bias=False), nn.BatchNorm1d(outs), nn.LeakyReLU(SLOPE)]
    last = _linear(widths[-2], widths[-1], bias=True)
    nn.init.zeros_(last.bias)
    network = nn.Sequential(*parts, last)
    for part in network:
        if isinstance(part, nn.Linear):
            nn.init.kaiming_normal_(part.weight, SLOPE, generator=generator)
    return network


def _linear(ins: int, outs: int, bias: bool) -> nn.Linear:
    """A layer with nothing in it yet: filling it at once would draw from the global random state."""
    return nn.Linear(ins, outs, bias=bias, device="meta").to_empty(device="cpu")


def folded(network: nn.Sequential) -> Layers:
    """Weights and biases of a trained perceptron, batch normalisation multiplied in, in float64."""
    layers: Layers = []
    for part in network:
        if isinstance(part, nn.Linear):
            weight = part.weight.detach().double()
            layers.append((weight, weight.new_zeros(len(weight)) if part.bias is None else part.bias.detach().double()))
        elif isinstance(part, nn.BatchNorm1d):
            assert part.running_mean is not None and part.running_var is not None, "batches are tracked"
            gain = part.weight.detach().double() / (part.running_var.double() + part.eps).sqrt()
            weight, bias = layers[-1]
            shifted = (bias - part.running_mean.double()) * gain + part.bias.detach().double()
            layers[-1] = (weight * gain.unsqueeze(1), shifted)
    return layers


def answer(layers: Layers, points: Tensor) -> Tensor:
    """The single output for each point."""
    for weight, bias in layers[:-1]:
        points = nn.functional.leaky_relu(points @ weight.T + bias, SLOPE)
    weight, bias = layers[-1]
    return (points @ weight.T + bias).squeeze(1)


class Adam:
    """Adam with the betas that adversarial networks want.

    Not torch's: building that one imports a compiler, which takes longer than all of the training.
    """

    def __init__(self, network: nn.Module, lr: float, betas: tuple[float, float] = (0.5, 0.999)) -> None:
        self.parameters = list(network.parameters())
        self.lr, self.betas, self.count = lr, betas, 0
        self.means = [torch.zeros_like(part) for part in self.parameters]
        self.squares = [torch.zeros_like(part) for part in self.parameters]

    def descend(self, loss: Tensor) -> None:
        """One step down the gradient of ``loss``."""
        gradients = torch.autograd.grad(loss, self.parameters)
        self.count += 1
        first, second = (1 - beta**self.count for beta in self.betas)
        with torch.no_grad():
            for part, gradient, mean, square in zip(self.parameters, gradients, self.means, self.squares):
                mean.lerp_(gradient, 1 - self.betas[0])
                square.lerp_(gradient.square(), 1 - self.betas[1])
                part.addcdiv_(mean, (square / second).sqrt_().add_(1e-8), value=-self.lr / first)
