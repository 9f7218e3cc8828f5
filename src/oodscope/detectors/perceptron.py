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
    for ins, outs in pairwise(widths):
        linear = nn.utils.skip_init(nn.Linear, ins, outs)
        nn.init.kaiming_normal_(linear.weight, SLOPE, generator=generator)
        nn.init.zeros_(linear.bias)
        parts += [linear, nn.BatchNorm1d(outs), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*parts[:-2])


def folded(network: nn.Sequential) -> Layers:
    """Weights and biases of a trained perceptron, batch normalisation multiplied in, in float64."""
    layers: Layers = []
    for part in network:
        if isinstance(part, nn.Linear):
            layers.append((part.weight.detach().double(), part.bias.detach().double()))
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
