"""Intervals: proven bounds on the outputs of a network for all images of a box.

Interval bound propagation (Gowal et al., "On the Effectiveness of Interval Bound Propagation for Training Verifiably
Robust Models", 2018): a box around the input is carried through layer after layer as its centre and radius. Whatever
lies in the box at the input lies in the box at the output.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from oodscope.base.errors import ModelError
from oodscope.models.classifier.clip import clip

MONOTONE = (nn.ReLU, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.MaxPool2d, nn.Flatten, nn.Identity)
"""Layers that carry the two ends of an interval to the two ends of the next."""

KNOWN = (nn.Conv2d, nn.Linear, *MONOTONE)


class Interval(NamedTuple):
    """All values between two tensors, in every place."""

    lower: Tensor
    upper: Tensor

    @property
    def centre(self) -> Tensor:
        return (self.lower + self.upper) / 2

    @property
    def radius(self) -> Tensor:
        return (self.upper - self.lower) / 2


def bounded_layers(model: nn.Module) -> list[nn.Module]:
    """The layers of a network in their order, where bounds can be carried through each; one line where they cannot.

    The network is a chain, or nested chains, of convolutions, linear layers, ReLU, pooling and what only changes
    shapes. Batch normalisation has no bounds while its statistics move.
    """
    parts = list(model) if isinstance(model, nn.Sequential) else [model]
    layers = [
        layer for part in parts for layer in (bounded_layers(part) if isinstance(part, nn.Sequential) else [part])
    ]
    for layer in layers:
        if not isinstance(layer, KNOWN):
            raise ModelError(
                f"no interval bounds are known for {type(layer).__name__}: the network must be a chain of Conv2d, "
                "Linear, ReLU, pooling and Flatten, such as plain_cnn_32"
            )
    return layers


def propagated(layers: Sequence[nn.Module], box: Interval) -> Interval:
    """Bounds on the output of ``layers`` for every input of ``box``."""
    for layer in layers:
        if isinstance(layer, MONOTONE):
            box = Interval(layer(box.lower), layer(box.upper))
        else:
            centre, radius = _affine(layer, box.centre, box.radius)
            box = Interval(centre - radius, centre + radius)
    return box


def _affine(layer: nn.Module, centre: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Of :math:`Wx + b`: the centre as any image, the radius by :math:`|W|`."""
    if isinstance(layer, nn.Linear):
        return linear(centre, layer.weight, layer.bias), linear(radius, layer.weight.abs())
    assert isinstance(layer, nn.Conv2d)
    shape: Any = (layer.stride, layer.padding, layer.dilation, layer.groups)
    return conv2d(centre, layer.weight, layer.bias, *shape), conv2d(radius, layer.weight.abs(), None, *shape)


def box_around(pixels: Tensor, epsilon: float | Tensor) -> Interval:
    """All images of pixels in [0, 1] that differ from ``pixels`` by at most ``epsilon`` in every value."""
    return Interval(clip(pixels - epsilon, 0, 1), clip(pixels + epsilon, 0, 1))


def logit_differences(layers: Sequence[nn.Module], box: Interval) -> Tensor:
    r"""Upper bounds on :math:`z_a - z_b` for all pairs of classes, ``[B, C, C]``; 0 on the diagonal.

    The last layer is not propagated but subtracted from itself, row by row, which is tighter than the difference of two
    bounds: :math:`U_{ab} = (W_a - W_b)^+ u + (W_a - W_b)^- l + b_a - b_b`.
    """
    last = layers[-1]
    if not isinstance(last, nn.Linear):
        raise ModelError(f"a network with proven bounds ends in a Linear, not in a {type(last).__name__}")
    hidden = propagated(layers[:-1], box)
    rows = last.weight[:, None] - last.weight  # [C, C, D]
    centre = torch.einsum("abd,nd->nab", rows, hidden.centre)
    radius = torch.einsum("abd,nd->nab", rows.abs(), hidden.radius)
    bias = torch.zeros(len(rows), device=rows.device) if last.bias is None else last.bias
    return centre + radius + bias[:, None] - bias


def certified_confidence(layers: Sequence[nn.Module], box: Interval) -> Tensor:
    r"""An upper bound on the largest class probability within the box, ``[B]``:
    :math:`\max_a 1 / \sum_b e^{-U_{ab}}`."""
    return (-(-logit_differences(layers, box)).logsumexp(dim=2)).exp().amax(dim=1)
