r"""SelfAttention: distant places of a feature map tell each other what they hold."""

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from oodscope.models.generators.spectral import SpectralConv


class SelfAttention(nn.Module):
    r"""Attention over the places of a map (Zhang et al., "Self-Attention Generative Adversarial Networks", ICML 2019).

    .. math:: y = x + γ\, W_o \sum_j \mathrm{softmax}_j\big(θ(x_i)^\top φ(x_j)\big)\, g(x_j)

    θ and φ have an eighth of the channels, g half of them; φ and g are halved in size by max pooling. γ begins at 0, so
    a network learns what is near first.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        few, half = max(1, channels // 8), max(1, channels // 2)
        self.query, self.key = SpectralConv(channels, few, 1), SpectralConv(channels, few, 1)
        self.value, self.out = SpectralConv(channels, half, 1), SpectralConv(half, channels, 1)
        self.strength = nn.Parameter(torch.zeros(()))

    def forward(self, maps: Tensor) -> Tensor:
        query = self.query(maps).flatten(2)
        key, value = (max_pool2d(layer(maps), 2).flatten(2) for layer in (self.key, self.value))
        weights = torch.softmax(query.transpose(1, 2) @ key, dim=2)
        gathered = (value @ weights.to(value.dtype).transpose(1, 2)).reshape(len(maps), -1, *maps.shape[2:])
        spread: Tensor = self.out(gathered)
        return maps + self.strength.to(spread.dtype) * spread
